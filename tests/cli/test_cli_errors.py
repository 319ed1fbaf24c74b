"""Bad use of commands: one sentence on standard error that names what is wrong, exit code 2, and nothing written."""

import shlex

import pytest
from cli_helpers import assert_one_sentence, write_csv

MONEY = "--vote-price 0.05 --expert-price 2"
RATES = "--labeler-accuracy 0.8 --error 0.1"
# What the sentence must hold, by command and by what is wrong in it.
BAD = {
    "": {
        "evaluat": "did you mean 'evaluate'",
        "evaluate": "'VOTES'",
        "check nowhere.csv": "'nowhere.csv' does not exist",
        "check votes.csv --format xml": "'xml'",
        "check votes.csv --gold-drawn random": "no --gold",
        "check votes.csv --gold truth.csv --gold-drawn maybe": "--gold-drawn must be one of",
        "compare votes.csv predictions.csv": "system",
        "demo --report none/demo.html": "does not exist",
        "auc votes.csv predictions.csv --view bays": "did you mean 'bayes'",
        "auc votes.csv systems.csv": "scores",
        "mean-score votes.csv --at-least 3": "--at-least",
        "serve votes.csv": "alone",
    },
    "evaluate votes.csv predictions.csv": {
        "--sead 1": "--sead",
        "--seed x": "--seed",
        "--seed -1": "--seed",
        "--metric acuracy": "did you mean 'accuracy'",
        "--method magic": "magic",
        "--assume shared": "--assume",
        "--warmup 10": "--warmup",
        "--noise none": "'dawid-skene'",
        "--level 2": "level",
        "--target moon": "target",
        "--positive maybe": "'maybe'",
        "--missing perhaps": "missing",
        "--only-system god": "'god'",
        "--report report.docx": ".html",
        "--report no/such/folder/report.html": "does not exist",
        "--method majority --draws 10": "--draws",
        "--method estimated-labels --fail-below accuracy=0.5": "interval",
        "--noise glad --warmup 10": "--warmup",
        "--item image": "'image'",
        "--prediction guess": "'guess'",
        "--duplicates some": "duplicates",
        "--gold verdicts.csv": "--gold-column",
        "--fail-below accuracy=90": "0 to 1, got 90",
        "--fail-below mcc=-2": "-1 to 1, got -2",
        "--fail-below acuracy=0.9": "--fail-below",
        "--fail-below accuracy=high": "METRIC=NUMBER",
        "--fail-below accuracy=nan": "METRIC=NUMBER",
        "--fail-below accuracy": "NAME=VALUE",
    },
    "compare votes.csv systems.csv": {
        "--junit no/such/folder/gate.xml --better-than bad": "does not exist",
        "--junit gate.xml": "--junit is about gates",
        "--require-gold": "--require-gold is about gates",
        "--margin 0.1": "--margin is about gates",
        "--candidate good": "--candidate is about gates",
        "--better-than nobody": "'nobody'",
        "--better-than bad --probability 95": "between 0.5 and 1",
        "--fail-below recall=0.5 --draws 60": "about 'accuracy'",
        "--fail-below accuracy=0.5 --fail-below accuracy=0.6": "twice",
    },
    "labelers votes.csv": {
        "--sort beauty": "--sort",
        "--level 2": "--level",
        "--spam-prior 1": "--spam-prior",
        "--noise silence": "noise",
        "--plot who.txt": ".png",
        "--plot no/such/folder/who.png": "does not exist",
        "--fail-if-spam 7": "fail-if-spam",
        "--labeler annotator": "annotator",
    },
    "plan": {
        "": "--budget and --half-width",
        f"--budget 5 --half-width 0.1 {MONEY} {RATES}": "--budget and --half-width",
        f"--budget 5 {MONEY} --error 0.1": "--labeler-accuracy is needed",
        f"--budget 5 {MONEY} --labeler-accuracy 0.8": "--error is needed",
        f"--budget -5 {MONEY} {RATES}": "budget",
        f"--budget lots {MONEY} {RATES}": "--budget",
        f"--budget 500 {RATES}": "prices",
        f"--half-width 0.02 {RATES}": "prices",
        f"--half-width 0.001 {MONEY} {RATES} --max-items 100 --max-votes 2": "within reach",
        f"--half-width 2 {MONEY} {RATES}": "--half-width",
        f"--budget 500 {MONEY} {RATES} --design prayer": "--design must be",
        f"--budget 500 {MONEY} {RATES} --level 95": "level",
        f"--budget 500 {MONEY} {RATES} --plot plan": ".png",
        f"alone.csv --budget 500 {MONEY} --error 0.1": "no item with two votes",
    },
    "plan draw votes.csv": {
        "": "--n",
        "--n 0": "--n",
        "--n 61": "--n must be at most the 60 items",
        "--n 1 --by votes": "--n must be at least the 2 strata",
        "--n 5 --by prediction": "go together",
        "--n 5 --by topic": "no item column 'topic'",
        "--n 5 --by votes --allocation fair": "--allocation must be one of",
        "--n 5 --out list.xlsx": "csv",
        "systems.csv --by prediction --n 5": "--only-system",
    },
    "share votes.csv --items items.csv": {
        "--of maybe": "maybe",
        "--of yes --by topic": "no item column 'topic'",
        "--of yes --weights system": "numbers",
        "--of yes --cluster prompt --target sample": "these items alone",
        "--of yes --by system --better-than alfa": "did you mean 'alpha'",
        "--of yes --better-than alpha": "by --by",
        "--of yes --fail-below no=0.5": "share of 'yes'",
        "--of yes --high 1": "--n-bins",
    },
    "rates": {
        "true-error --apparent often --mislabeling 0.05": "--apparent must be a rate",
        "true-error --apparent 120/100 --mislabeling 0.05": "part of a whole",
        "true-error --apparent 0/0 --mislabeling 0.05": "part of a whole",
        "true-error --apparent 1.2 --mislabeling 0.05": "apparent",
        "true-error --apparent nan --mislabeling 0.05": "apparent",
        "true-error --apparent 0.1 --mislabeling 0.5": "0.5",
        "true-error --apparent 1/10 --mislabeling 0.05 -n 20": "-n must be",
        "true-error --apparent 0.1 --mislabeling 0.05 --method guess -n 9": "method",
        "true-error --apparent 0.1 --mislabeling 0.05 --fail-above 0.1": "needs an interval",
        "true-error --mislabeling 0.05": "--apparent",
        "bounds --apparent 0.1 --mislabeling 0.05 --dependence some": "dependence",
        "break-even --labeler 0.9 --prevalence 0.1": "--apparent and --true",
        "confusion --joint '1,2;3' --labeler '9,1;1,9'": "--joint must be a matrix",
        "confusion --joint 'a,b;c,d' --labeler '9,1;1,9'": "--joint must be a matrix",
        "confusion --joint '5,1;1,5' --labeler '5,5;5,5'": "cannot",
        "confusion --joint '5,1;1,5' --labeler '9,1;1,9' -m beauty": "beauty",
        "policy --error 0.1 --mislabeling 0.1 --labelers 3 --combine dice": "combine",
        "guess": "guess",
    },
    "simulate": {
        "": "see 'trueup simulate --list'",
        "reality --out x": "the simulator must be one of",
        "baseline": "--out DIR",
        "baseline --out x --set n_itmes=5": "n_items",
        "baseline --out x --set n_items": "NAME=VALUE",
        "baseline --out x --set n_items=1 --set n-items=2": "twice",
        "baseline --out x --set n_items=many": "n_items",
        "baseline --out x --set random_state=1": "--seed",
        "baseline --out x --seed -1": "seed",
        "dawid-skene --out x --set classifier_accuracy=none": "classifier",
        "dawid-skene --out x --set n_items=99999999999999": "too little memory",
        "baseline --out /dev/null/x": "cannot be made",
        "baseline --out /dev/null": "must be a folder",
    },
}


@pytest.fixture
def folder(votes_csv, predictions_csv, systems_csv, items_csv, truth_csv, tmp_path, monkeypatch):
    """The files that the commands name, in the folder that they run in."""
    write_csv(tmp_path / "verdicts.csv", ("item", "opinion"), [("i0", "yes")])
    write_csv(tmp_path / "alone.csv", ("item", "labeler", "label"), [(1, "a", "x"), (2, "a", "y"), (3, "b", "x")])
    monkeypatch.chdir(tmp_path)
    return tmp_path


CALLS = [(f"{command} {rest}", words) for command, calls in BAD.items() for rest, words in calls.items()]


@pytest.mark.parametrize(("call", "words"), CALLS, ids=[call.replace("/", "_") for call, _ in CALLS])
def test_bad_use_is_one_sentence_and_writes_nothing(run_main, folder, call, words):
    before = sorted(folder.iterdir())
    ran = run_main(*shlex.split(call))
    assert_one_sentence(ran)
    assert words in ran.err
    assert sorted(folder.iterdir()) == before


# What is wrong with files otherwise is known to the tests of reading them; here it ends in the right way.
BAD_VOTES = {
    "empty": ("bad.csv", b"", "is empty"),
    "latin-1": ("bad.csv", "item,labeler,label\n1,a,café\n1,b,thé\n".encode("latin-1"), "save it as UTF-8"),
    "not gzip": ("bad.csv.gz", b"item,labeler,label\n", "bad.csv.gz"),
    "unknown suffix": ("bad.xlsx", b"item,labeler,label\n", ".xlsx"),
    "an open quote": ("bad.csv", b'item,labeler,label\n1,"a,x\n2,b,y\n', "quotes"),
}


@pytest.mark.parametrize(("name", "content", "words"), BAD_VOTES.values(), ids=BAD_VOTES)
def test_bad_votes_are_one_sentence(run_main, folder, name, content, words):
    (folder / name).write_bytes(content)
    ran = run_main("vet", "ask", "session.json", name, "predictions.csv")
    assert_one_sentence(ran)
    assert words in ran.err
    assert not (folder / "session.json").exists()


BAD_PREDICTIONS = {
    "empty": (b"", "is empty"),
    "twice": (b"item,prediction\ni0,yes\ni0,no\n", "once"),
    "no number": (b"item,score\ni0,high\n", "'high'"),
}


@pytest.mark.parametrize(("content", "words"), BAD_PREDICTIONS.values(), ids=BAD_PREDICTIONS)
def test_bad_predictions_are_one_sentence(run_main, folder, content, words):
    (folder / "bad.csv").write_bytes(content)
    ran = run_main("evaluate", "votes.csv", "bad.csv")
    assert_one_sentence(ran)
    assert words in ran.err
