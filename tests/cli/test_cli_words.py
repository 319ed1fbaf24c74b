"""Every sentence on the command line speaks its language: options in place of parameters, rows as a file has them."""

import ast
import re
from pathlib import Path

import pytest
from cli_helpers import assert_one_sentence, write_csv

import trueup
from trueup.cli._console import option_names, to_cli_terms
from trueup.cli.judge import evaluate
from trueup.exceptions import InvalidLabels

_OPTIONS = evaluate.options


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ('pass `unknown_class="ignore"`', "pass --unknown-class ignore"),
        ("name it with `item=…`", "name it with --item"),
        ("raise `n_draws`", "raise --draws"),
        ("read the votes with `classes=[…]`", "read the votes with --class"),
        ("add gold (`labels.with_gold`)", "add gold (--gold)"),
        ("pass `abstain=None`", "pass --abstain ''"),
        ("(first: `row 0`)", "(first: row 1 after the header)"),
        ("pass `max_iter=9`", "pass max_iter=9 in Python"),
        ("use `trueup.noise.Confusion`", "use trueup.noise.Confusion in Python"),
    ],
)
def test_a_parameter_is_spelled_as_its_option(sentence, words):
    with option_names(**_OPTIONS):
        assert to_cli_terms(sentence) == words


def test_errors_come_out_in_the_words_of_the_innermost_reader():
    inner = option_names(label="--gold-column")
    with pytest.raises(InvalidLabels, match=r"^use --gold-column$"), option_names(label="--label"), inner:
        raise InvalidLabels("use `label=…`", parameter="label")


def raised_texts(path):
    """The text of every error that a module raises, with what is filled in as {…}."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield "".join(ast.unparse(argument) for argument in node.exc.args)


def test_errors_that_reach_the_command_line_mark_their_parameters():
    bare = re.compile(
        r"(?<![`\w'\"])(missing|unknown|unknown_class|noise|duplicates|method|target|items|classes|abstain)="
    )
    found = [
        f"{path.name}: {text}"
        for package in ("data", "answers", "estimators", "noise", "active", "sessions")
        for path in sorted((Path(trueup.__file__).parent / package).rglob("*.py"))
        for text in raised_texts(path)
        if bare.search(text)
    ]
    assert found == []


@pytest.mark.parametrize("command", ["evaluate", "compare", "auc"])
def test_no_overlap_does_not_advise_what_was_done(run_main, votes_csv, tmp_path, command):
    rows = [(f"other{i}", name, "yes", 0.5) for i in range(5) for name in ("a", "b")]
    path = write_csv(tmp_path / "p.csv", ("item", "system", "prediction", "score"), rows)
    policies = ("--missing", "ignore", "--unknown", "ignore") if command == "evaluate" else ()
    ran = run_main(command, votes_csv, path, *policies)
    assert_one_sentence(ran)
    assert "no item of the predictions of system 'a' has votes" in ran.err
    assert "ignore" not in ran.err
