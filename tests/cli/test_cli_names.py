"""What the command line takes Python takes under the same name, and the other way round."""

import inspect

import pytest

import trueup as tu
from trueup.cli import COMMANDS
from trueup.cli._app import _built
from trueup.labelers import draw_sample

VOTES, BOTH = (tu.read_labels,), (tu.read_labels, tu.read_predictions)
SHARE = (*VOTES, tu.Labels.binned, tu.gate)
CALLS = {
    "auc": (*BOTH, tu.auc),
    "compare": (*BOTH, tu.compare, tu.gate),
    "evaluate": (*BOTH, tu.evaluate, tu.gate),
    "labelers": (*VOTES, tu.labelers.rank),
    "mean-score": (*SHARE, tu.mean_score),
    "monitor add": (*BOTH, tu.Monitor, tu.Monitor.add),
    "plan draw": (*BOTH, draw_sample),
    "preferences": (tu.read_pairs, tu.preferences, tu.gate),
    "share": (*SHARE, tu.share),
}
# Python's name of an option: where one call has what Python says in two, or a word for what is given several times.
IN_PYTHON = {
    "class": "classes",
    "class_probability": "probabilities",
    "draws": "n_draws",
    "fail_above": "at_most",
    "fail_below": "at_least",
    "format": "file_format",
    "judged_on": "items",
    "metric": "metrics",
    "no_vote": "missing",
    "seed": "random_state",
    "warmup": "n_warmup",
}
# Of the program: what it shows and writes, and how it ends. Python has these as methods, or as an index.
OF_THE_PROGRAM = {"json", "report", "plot", "junit", "summary", "out", "force", "with_text", "top", "only_system", "n"}
OF_THE_PROGRAM |= {"judged_on", "ask", "n_ask", "fail_if_dependent", "fail_if_spam", "fail_on_alarm"}
# Objects, and what a program does in its own way: progress, many machines, a check that is always made.
OF_PYTHON = {"prior", "labels", "progress", "engine", "check_dependence", "truth", "predictions"}
OF_SAMPLERS = {"n_draws", "draws", "warmup"}  # they go through to the sampler of a named model
EXCEPT = {
    "labelers": {"panel"},  # the function of this name
    "auc": {"level"},  # of `Estimate.interval`
    "evaluate": {"better_than", "candidate", "margin", "not_worse_than"},  # gates of `compare`
    "preferences": {"at_least", "at_most"},  # gates of other answers
}


def keywords(call):
    return {
        name
        for name, p in inspect.signature(call).parameters.items()
        if p.kind is p.KEYWORD_ONLY or p.default is not p.empty
    }


def options(name):
    group, *rest = name.split()
    command = _built(group, COMMANDS[group])
    for word in rest:
        command = command.commands[word]
    flags = [max(p.opts, key=len) for p in command.params if p.param_type_name == "option"]
    return {flag.removeprefix("--").replace("-", "_") for flag in flags} - {"help"}


@pytest.mark.parametrize("name", CALLS)
def test_the_command_line_and_python_take_the_same(name):
    named = {option: {option, IN_PYTHON.get(option)} for option in options(name)}
    taken = set().union(*map(keywords, CALLS[name]))
    excepted = OF_SAMPLERS | EXCEPT.get(name, set())
    assert {option for option, names in named.items() if not names & taken} <= OF_THE_PROGRAM | excepted
    assert taken - set().union(*named.values()) <= OF_PYTHON | excepted


@pytest.mark.parametrize(
    ("earlier", "now"),
    [
        (("share", "v.csv", "--mean", "--bins", "3"), ("mean-score", "v.csv", "--n-bins", "3")),
        (("share", "v.csv", "--of", "1", "--lowest=0"), ("share", "v.csv", "--of", "1", "--low=0")),
        (
            ("plan", "draw", "v.csv", "--n", "2", "--stratify", "topic"),
            ("plan", "draw", "v.csv", "--n", "2", "--by", "topic"),
        ),
    ],
)
def test_earlier_names_are_taken_for_one_version(earlier, now, capsys):
    from trueup.cli._app import _as_named_now

    assert tuple(_as_named_now(list(earlier))) == now
    assert capsys.readouterr().err
    assert tuple(_as_named_now(list(now))) == now
    assert not capsys.readouterr().err
