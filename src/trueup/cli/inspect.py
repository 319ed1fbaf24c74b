"""trueup inspect: finished logs of Inspect in one line: how far graders agree, how often each model is right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from trueup.cli import _options as options
from trueup.cli._command import Answer, as_command
from trueup.cli._console import note, say
from trueup.cli._files import class_named
from trueup.cli.share import show_shares


@as_command
def inspect(
    logs: Annotated[list[str], options.Option("Logs, .eval or .json.", "LOGS", reads=True, is_argument=True)],
    of: str = options.opt("C", "The grade whose share is asked for.", "GRADE", show=True),
    question: str | None = options.opt(None, "Of several kinds of scores, this one.", "NAME"),
    gold_key: str | None = options.opt(None, "The key of the metadata that holds the right grade.", "KEY"),
    gold_drawn: str | None = options.opt(None, "How the checked samples were drawn: random or chosen.", "HOW"),
    by: str = options.opt("system", "The groups: a column of the answers, such as a key of the metadata.", "COLUMN"),
    scores: str | None = options.opt(
        None, "Also write a copy of the log, with what its graders say together as a score more.", "LOG", writes=True
    ),
    level: options.Level = 0.95,
    seed: options.Seed = 0,
) -> Answer:
    """How often is each model right, and do its graders agree? From finished logs of Inspect."""
    from trueup.answers.share import share
    from trueup.exceptions import InvalidParameter
    from trueup.integrations.inspect import read_logs, write_scores
    from trueup.reliability import agreement

    if scores is not None and len(logs) != 1:
        raise InvalidParameter(f"--scores writes a copy of one log, got {len(logs)}; name one")
    labels = read_logs(*logs, question=question, gold=gold_key, drawn=gold_drawn)  # type: ignore[arg-type]
    grade = class_named(labels, of)
    shares = share(labels, of=grade, by=by, cluster="sample", level=level, random_state=seed)
    agreed = agreement(labels, level=level).to_dict() if labels.n_labelers > 1 else None
    if scores is not None:
        note(f"log: {write_scores(logs[0], scores, question=question)}")

    def show(body: Mapping[str, Any]) -> None:
        show_shares(shares, body)
        if agreed is not None:
            say(agreed["sentence"])

    return Answer(lambda: {**shares.to_dict(), "agreement": agreed}, show, warnings=shares.warnings)
