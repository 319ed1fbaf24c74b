"""`trueup serve`: from files to a server, a second link while it runs, and the end."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import fields
from http.cookiejar import CookieJar
from pathlib import Path

import pytest
from cli_helpers import HANGS_AFTER, PROGRAM, assert_one_sentence

import trueup as tu
from trueup.cli import main
from trueup.cli._gates import DecisionOptions
from trueup.cli._options import PredictionOptions, VoteOptions
from trueup.cli._vetting import SessionOptions
from trueup.cli.serve import ServeOptions, layout_of, read_settings
from trueup.exceptions import InvalidFile
from trueup.serve.card_service import Layout

pytest.importorskip("fastapi", reason="the app needs the extra serve: pip install 'trueup[serve]'")


@pytest.fixture
def files(tmp_path):
    sim = tu.simulate.dawid_skene(n_items=60, n_labelers=4, random_state=0)
    tu.write_labels(sim.labels, tmp_path / "votes.csv")
    items = sim.labels.items.tolist()
    rows = "\n".join(f"{item},{code}" for item, code in zip(items, sim.truth.tolist(), strict=True))
    (tmp_path / "predictions.csv").write_text(f"item,prediction\n{rows}\n")
    texts = "\n".join(f"{item},Look at {item}" for item in items)
    (tmp_path / "items.csv").write_text(f"item,text\n{texts}\n")
    (tmp_path / "q3.toml").write_text(
        'votes = "votes.csv"\npredictions = "predictions.csv"\n'
        '[reading]\nitems = "items.csv"\n'
        '[test]\nnoise = "dawid-skene"\nbudget = 30\n'
        '[server]\nport = 0\nexperts = ["ann"]\n'
        '[card]\nkind = "text"\nshow = ["text"]\nclass_names = { 0 = "No", 1 = "Yes" }\n'
    )
    return tmp_path


@contextmanager
def serving(folder, *arguments, last="ann"):
    """A server that runs; its process, and the links that it printed by person, of whom one comes last."""
    process = subprocess.Popen(
        [PROGRAM, "serve", *arguments],
        cwd=folder,
        env={**os.environ, "TRUEUP_ENGINE": "scipy"},  # nothing to compile
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        lines, links = [], {}
        until = time.monotonic() + HANGS_AFTER
        assert process.stdout is not None
        while last is not None and last not in links:
            line = process.stdout.readline()
            lines.append(line)
            assert line, "".join(lines)
            assert time.monotonic() < until
            found = re.match(r"(\w+) \((owner|expert)\), once: (\S+)$", line)
            if found:
                links[found[1]] = found[3]
        yield process, links
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.communicate()


def browser(link):
    """Whoever used a link: a function that opens pages."""
    base, _, key = link.partition("enter?key=")
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    opener.addheaders = [("sec-fetch-site", "same-origin")]
    opener.open(base + "enter", urllib.parse.urlencode({"key": key}).encode(), timeout=HANGS_AFTER).read()

    def call(path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(base + path, data, {"content-type": "application/json"})
        return opener.open(request, timeout=HANGS_AFTER)

    return call


def first_card(call):
    until = time.monotonic() + HANGS_AFTER
    while True:
        placed = json.loads(call("next").read())
        if placed["card"] is not None:
            return placed
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no Ctrl-C to send to another process")
def test_a_session_is_served_continued_and_ended(files, run_main, monkeypatch):
    monkeypatch.chdir(files)
    with serving(files, "q3.toml") as (process, links):
        ann, owner = browser(links["ann"]), browser(links["owner"])
        placed = first_card(ann)
        assert "Yes" in placed["html"]
        assert "Look at" in placed["html"]
        card = json.loads(ann("reply", {"card": placed["card"], "choice": "1", "key": "k"}).read())["card"]
        with pytest.raises(urllib.error.HTTPError, match="403") as refused:
            browser(links["ann"])  # it was used
        refused.value.close()
        made = run_main("serve", "--new-link", "bob", "q3.toml")
        assert made.code == 0, made.err
        new = re.search(r"enter\?key=\S+", made.out)[0]
        bob = browser(links["owner"].partition("enter")[0] + new)
        assert first_card(bob)["card"] != card
        with owner("owner-events") as stream:  # stays open
            assert stream.readline().startswith(b"retry")
            process.send_signal(signal.SIGINT)
            code = process.wait(HANGS_AFTER)
            assert code == 0, process.stdout.read()
    with serving(files, "q3.toml", "--expert", "ann", "--expert", "eve", last="eve") as (_, links):
        assert set(links) == {"owner", "eve"}  # ann has a way in
        parsed = json.loads(browser(links["owner"])("export-log.json").read())
        assert [event["who"] for event in parsed if event["kind"] == "tell"] == ["ann"]


def test_a_decision_is_served_from_options_and_from_a_file(files, run_main, monkeypatch):
    monkeypatch.chdir(files)
    how = ("votes.csv", "predictions.csv", "--fail-below", "accuracy=0.9", "--port", "0", "--expert", "ann")
    with serving(files, *how) as (_, links):
        first_card(browser(links["ann"]))
        owner, until = browser(links["owner"]), time.monotonic() + HANGS_AFTER
        while "the verdict is false with at most 5%" not in owner("owner").read().decode():
            assert time.monotonic() < until
            time.sleep(0.1)
    (files / "q4.toml").write_text(
        'votes = "votes.csv"\n[decision]\nof = "1"\nfail_below = ["1=0.2"]\n[server]\nport = 0\nexperts = ["ann"]\n'
    )
    with serving(files, "q4.toml") as (_, links):
        assert first_card(browser(links["ann"]))["card"] is not None
    for more in (
        ("--half-width", "0.1", "--fail-below", "accuracy=0.9"),
        ("--probability", "0.9"),
        ("--not-worse-than", "old"),
        ("--of", "1", "--fail-below", "1=0.5"),
        ("--by", "system", "--fail-below", "accuracy=0.5"),
    ):
        assert_one_sentence(run_main("serve", "votes.csv", "predictions.csv", *more, "--port", "0"))


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize(
    ("number", "is_early"), [(signal.SIGKILL, True), (signal.SIGKILL, False), (signal.SIGTERM, False)]
)
def test_a_demo_leaves_nothing_behind_however_it_ends(tmp_path, monkeypatch, number, is_early):
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    def await_folders(are_there):
        until = time.monotonic() + HANGS_AFTER
        while any(tmp_path.glob("trueup-demo-*")) != are_there:
            assert time.monotonic() < until
            assert not are_there or process.poll() is None, process.stdout.read()
            time.sleep(0.02)

    with serving(tmp_path, "--demo", "--port", "0", last=None if is_early else "bob") as (process, _):
        await_folders(True)
        assert process.poll() is None
        process.send_signal(number)
        process.wait(HANGS_AFTER)
        await_folders(False)


def test_guidelines_without_a_class_are_refused_before_anything_is_worked_out(files, run_main, monkeypatch):
    monkeypatch.chdir(files)
    (files / "guide.md").write_text("# In general\nLook twice.\n")
    refused = run_main("serve", "votes.csv", "predictions.csv", "--guidelines", "guide.md", "--port", "0")
    assert refused.code == 2
    assert refused.err.splitlines()[-1].startswith("error: the guidelines")
    assert not list(files.glob("*.vetting.db"))


def test_a_file_of_settings_is_read_with_paths_from_its_folder(files):
    served = read_settings(files / "q3.toml")
    assert (served.name, served.votes) == ("q3", str(files / "votes.csv"))
    assert served.how.items == str(files / "items.csv")
    assert served.url == f"sqlite:///{files}/q3.vetting.db"
    assert (served.test.budget, served.server_settings().port) == (30, 0)
    assert layout_of(served.card).show == ("text",)


def test_the_guide_names_every_key_of_a_file_of_settings():
    guide = Path(__file__).parents[2] / "docs" / "guide" / "vetting-app.md"
    rows = dict(re.findall(r"^\| `\[(\w+)\]` \| (.*) \|$", guide.read_text(encoding="utf-8"), re.MULTILINE))
    bundles = {"reading": (VoteOptions, PredictionOptions), "test": (SessionOptions,), "server": (ServeOptions,)}
    bundles["decision"] = (DecisionOptions,)
    keys = {table: {one.name for bundle in each for one in fields(bundle)} for table, each in bundles.items()}
    keys["card"] = {*(one.name for one in fields(Layout)), "class_names"}
    assert {table: set(re.findall(r"`(\w+)`", row)) for table, row in rows.items()} == keys


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("votes = 3", "must name votes and predictions"),
        ("[server", "must be a TOML file"),
        ('votes = "v"\npredictions = "p"\nserver = 1', "must be a table"),
        ('votes = "v"\npredictions = "p"\n[server]\nprot = 1', "did you mean 'port'"),
        ('votes = "v"\npredictions = "p"\n[card]\nsize = 1', "'size'"),
        ('votes = "v"\npredictions = "p"\nexperts = []', "'experts'"),
        ('votes = "v"\npredictions = 3', "predictions of"),
        ('votes = "v"\npredictions = "p"\nreading = 3', "must be a table"),
        ('votes = "v"\npredictions = "p"\n[reading]\nitems = ["a"]', "items in .* must be a valid string"),
        ('votes = "v"\npredictions = "p"\n[server]\nport = "8000"', "port in .* must be a valid integer, got '8000'"),
        ('votes = "v"\npredictions = "p"\n[server]\nexperts = "ann"', "experts in .* must be a valid list, got 'ann'"),
        ('votes = "v"\npredictions = "p"\n[test]\nbudget = 1.5', "budget in"),
        ('votes = "v"\npredictions = "p"\n[card]\nshow = "text"', "show in .* must be a valid list"),
    ],
)
def test_a_file_of_settings_that_makes_no_sense_is_refused(tmp_path, text, words):
    file = tmp_path / "s.toml"
    file.write_text(text)
    with pytest.raises(InvalidFile, match=words):
        read_settings(file)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["votes.csv"], "alone"),
        ([], "needs files"),
        (["votes.csv", "predictions.csv", "--host", "0.0.0.0"], "public"),
        (["q3.toml", "--metric", "f1"], "belong in its file"),
        (["--new-link", "ann"], "must be named"),
        (["votes.csv", "predictions.csv", "--estimator", "bayes"], "was measured to hold too rarely"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(files, arguments, words, monkeypatch, capsys):
    monkeypatch.chdir(files)
    with pytest.raises(SystemExit) as left:
        main(["serve", *arguments])
    error = " ".join(capsys.readouterr().err.split())
    assert (left.value.code, error.startswith("error: ")) == (2, True)
    assert words in error
    assert not (files / "votes.vetting.db").exists()


def test_a_file_of_tiles_stands_alone(run_main, tmp_path):
    (tmp_path / "tiles.json").write_text("{}")
    for arguments, sentence in [
        ((tmp_path / "tiles.json",), "must be the tiles of a pool"),
        ((tmp_path / "tiles.json", "--noise", "majority"), "got options in addition to"),
        ((tmp_path / "none.json",), "none.json"),
    ]:
        ran = run_main("serve", *arguments)
        assert_one_sentence(ran)
        assert sentence in ran.err
