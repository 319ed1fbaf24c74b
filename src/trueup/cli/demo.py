"""trueup demo: the main job on data the project makes itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trueup.cli._options import AsJson, Seed

if TYPE_CHECKING:
    from trueup.demo import Demo

__all__ = ["demo"]


def demo(
    report: Annotated[
        str, typer.Option("--report", metavar="PATH", help="Where to write the report: .html, .md or .json.")
    ] = "trueup-demo.html",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Train two classifiers, let a simulated crowd label the test part, and say how good they really are."""
    from pathlib import Path

    from trueup.cli._command_line import command_line
    from trueup.cli._console import print_json, progress_bar, say
    from trueup.cli._judging import warn_once
    from trueup.cli._reporting import check_report_path, json_head, write_report
    from trueup.demo import run_demo

    check_report_path(report)
    with progress_bar("judging two classifiers") as hear:
        done: dict[str, float] = {}

        def listen(step: str, share: float) -> None:
            done[step] = share
            if hear is not None:
                hear(sum(done.values()) / 3)

        result = run_demo(random_state=seed, progress=None if hear is None else listen)
    # Before anything is printed: the reader of a pipe may go away.
    write_report(
        report,
        result.evaluations,
        result.labels,
        comparison=result.comparison,
        title="Two classifiers of handwritten digits, judged by a simulated crowd",
        seed=seed,
        settings={"command": command_line()},
        tell=as_json,
    )
    if as_json:
        print_json(
            {
                **json_head(seed=seed, files={}),
                "systems": [
                    {
                        "system": name,
                        **evaluation.to_dict(),
                        "majority_accuracy": result.majority[name],
                        "hidden_accuracy": result.truth[name],
                    }
                    for name, evaluation in result.evaluations.items()
                ],
                "comparison": result.comparison.to_dict(),
                "report": str(Path(report).resolve()),
            }
        )
    else:
        _show(result)
    warn_once([evaluation.warnings for evaluation in result.evaluations.values()])
    if not as_json:
        say(f"The report is at {Path(report).resolve()}")


def _show(result: Demo) -> None:
    from trueup.cli._console import chance, interval, number, print_table, say

    labels, comparison = result.labels, result.comparison
    say(
        f"A crowd of {labels.n_labelers} gave {labels.n_votes:,} votes on {labels.n_items:,} handwritten digits; "
        f"nobody is told the truth. {result.effective.sentence}"
    )
    rows = []
    for name, evaluation in result.evaluations.items():
        accuracy = evaluation["accuracy"]
        bounds = interval(*accuracy.interval(0.95))
        rows.append((name, number(accuracy.mean), bounds, number(result.majority[name]), number(result.truth[name])))
    columns = ("accuracy of", "trueup", "95% interval", "majority as truth", "hidden truth")
    print_table(columns, rows)
    best, other = comparison.ranking[:2]
    say(
        f"{best} is better than {other} with probability {chance(comparison.prob_better(best, other))}; in truth it is "
        f"{'better' if result.truth[best] > result.truth[other] else 'not better'}."
    )
