"""The tools of an assistant: what they answer to the package's client, and that nothing outside the root is read."""

import asyncio
import json
import os
import resource
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest

import trueup as tu
from trueup.cli import main
from trueup.exceptions import InvalidFile, MissingExtra, TrueupError
from trueup.integrations import mcp as integration

real = pytest.mark.integrations("mcp")
SECRET = "the-secret-of-somebody-else"
FIRST_ANSWER = 1.5  # seconds of the processor until the client knows the tools


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with files to judge, and in it and beside it what must not be read."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.csv").write_text(f"item,labeler,label\n{SECRET},a,b\n", encoding="utf-8")
    root = tmp_path_factory.mktemp("root")
    sim = tu.simulate.dawid_skene(n_items=60, n_labelers=4, random_state=0)
    tu.write_labels(sim.labels, root / "votes.csv")
    for name, truths in (("good", sim.truth), ("bad", 1 - sim.truth)):
        rows = [f"{item},{label}" for item, label in zip(sim.labels.items.tolist(), truths.tolist(), strict=True)]
        (root / f"{name}.csv").write_text("\n".join(["item,prediction", *rows]), encoding="utf-8")
    (root / "folder").mkdir()
    (root / "link.csv").symlink_to(outside / "secret.csv")
    (root / "links").symlink_to(outside)
    (root / "circle").symlink_to(root / "circle")
    os.mkfifo(root / "pipe")
    with (root / "big.csv").open("wb") as file:
        file.truncate(2**30)
    (root / "numpy.py").write_text("raise SystemExit('a file of the root was imported')\n", encoding="utf-8")
    return root


BAD_PATHS = [
    *("../outside0/secret.csv", "/etc/passwd", "folder/../../outside0/secret.csv", "link.csv", "links/secret.csv"),
    *("circle", "big.csv", "pipe", "folder", ".", "", "folder/..", "/dev/zero", "/proc/self/environ", "nowhere.csv"),
    *("votes.csv\0.png", "votes.csv\n", "~/.ssh/id_rsa", "file:///etc/passwd", "http://localhost/votes.csv", "-"),
    *(".hidden.html", "folder/.git.html", "--help", "--gold=votes.csv", "x" * 5000, "..\\secret.csv", "\ud800"),
    *(5, True, [], {}, ["votes.csv"], 1e300),
]
# New files in the root, of which the command refuses the suffix; the last is a name as any other.
NEW_NAMES = ("nowhere.csv", "--help", "--gold=votes.csv", "-", "..\\secret.csv")
BAD_CALLS = [
    *((tool, {"votes": path}) for tool in ("check", "agreement") for path in BAD_PATHS),
    *(("share", {"votes": "votes.csv", "of": "1", name: path}) for name in ("gold", "items") for path in BAD_PATHS),
    *(("compare", {"votes": "votes.csv", "predictions": [path]}) for path in BAD_PATHS),
    *(("evaluate", {"votes": "votes.csv", "predictions": "good.csv", "report": path}) for path in BAD_PATHS),
    *((tool, {}) for tool in integration.TOOLS),
    *((tool, {"votes": "votes.csv", "junit": "x.xml"}) for tool in integration.TOOLS),
    ("shell", {"command": "cat /etc/passwd"}),
    ("__class__", {}),
    *(("plan_checks", {"votes": "votes.csv", "n": n}) for n in ("5", True, [5], {"n": 5}, 1e300, -1e300, None)),
    ("gate", {"answer": "serve", "votes": "votes.csv"}),
    ("gate", {"answer": ["share"], "votes": "votes.csv"}),
    ("gate", {"answer": "share", "votes": "votes.csv", "of": "1", "at_least": "0.5"}),
    ("gate", {"answer": "share", "votes": "votes.csv", "of": "1", "require_gold": "yes"}),
    ("gate", {"answer": "share", "votes": "votes.csv", "of": "1", "at_least": {}}),
    ("gate", {"answer": "share", "votes": "votes.csv", "of": "1", "at_least": {str(k): 0.5 for k in range(51)}}),
    ("share", {"votes": "votes.csv", "gold_drawn": "as you like"}),
    ("compare", {"votes": "votes.csv", "predictions": ["good.csv"] * 51}),
]


@pytest.mark.parametrize("may_write", [False, True])
def test_a_hostile_request_is_one_sentence_and_nothing_is_read(root, monkeypatch, may_write):
    def no_reading(*args, **options):
        raise AssertionError(f"{args} was opened")

    assert len(BAD_CALLS) >= 200
    folder = integration.Folder(root.resolve(), may_write)
    before = sorted(path.name for path in root.iterdir())
    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", no_reading)
        patch.setattr("io.open", no_reading)
        patch.setattr(os, "open", no_reading)
        for tool, arguments in BAD_CALLS:
            if may_write and arguments.get("report") in NEW_NAMES:
                continue
            with pytest.raises(TrueupError) as refused:
                integration.command_line(tool, arguments, folder)
            sentence = str(refused.value)
            assert "\n" not in sentence
            assert len(sentence) < 700
            assert SECRET not in sentence
    assert sorted(path.name for path in root.iterdir()) == before


def test_a_call_is_a_command_whose_files_are_no_options(root):
    (root / "--seed=1.csv").write_text("item,labeler,label\n", encoding="utf-8")
    folder = integration.Folder(root.resolve(), may_write=True)
    command = integration.command_line(
        "evaluate",
        {"votes": "--seed=1.csv", "predictions": "folder/../good.csv", "metrics": ["--noise=x"], "report": "new.html"},
        folder,
    )
    assert command.command == [
        *("evaluate", "--json", "--metric=--noise=x", "--report=./new.html", "--", "./--seed=1.csv", "./good.csv")
    ]
    assert (command.reads, command.writes) == (["./--seed=1.csv", "./good.csv"], ["./new.html"])
    command = integration.command_line(
        "gate", {"answer": "share", "votes": "votes.csv", "of": "1", "at_least": 0.5, "require_gold": True}, folder
    )
    assert command.command == ["share", "--json", "--of=1", "--fail-below=1=0.5", "--require-gold", "--", "./votes.csv"]


SWAPS = ["a link to a file", "a folder that became a link", "a pipe", "a file that grew", "gone"]


@pytest.mark.parametrize("swap", SWAPS)
def test_what_takes_the_place_of_a_file_after_it_was_checked_is_not_read(tmp_path, monkeypatch, swap):
    root, outside, private = (tmp_path / name for name in ("root", "outside", "private"))
    for place in (root / "in", outside, private):
        place.mkdir(parents=True)
    for place in (root / "in", outside):
        (place / "votes.csv").write_text(f"item,labeler,label\n{place.name},a,b\n", encoding="utf-8")
    folder = integration.Folder(root.resolve())
    call = integration.command_line("check", {"votes": "in/votes.csv"}, folder)
    file = root / "in" / "votes.csv"
    if swap == SWAPS[1]:
        (root / "in").rename(root / "before")
        (root / "in").symlink_to(outside)
    elif swap == SWAPS[3]:
        monkeypatch.setattr(integration, "MOST_BYTES", 10)
    else:
        file.unlink()
        {SWAPS[0]: lambda: file.symlink_to(outside / "votes.csv"), SWAPS[2]: lambda: os.mkfifo(file)}.get(swap, str)()
    with pytest.raises(InvalidFile) as refused:
        asyncio.run(integration._run(call, folder))
    assert "\n" not in str(refused.value)
    with pytest.raises(InvalidFile):
        folder.copy_to(private, call.reads)
    assert not [path for path in private.rglob("*") if path.is_file()]


@pytest.mark.parametrize("swap", ["a link where the file was to be", "a folder that became a link", "a file"])
def test_nothing_is_written_through_what_took_the_place_of_a_name(tmp_path, swap):
    root, outside, private = (tmp_path / name for name in ("root", "outside", "private"))
    for place in (root / "in", outside, private / "in"):
        place.mkdir(parents=True)
    folder = integration.Folder(root.resolve(), may_write=True)
    name = folder.new("report", "in/report.md")
    (private / "in" / "report.md").write_text("new", encoding="utf-8")
    if "folder" in swap:
        (root / "in").rmdir()
        (root / "in").symlink_to(outside)
    elif "link" in swap:
        (root / "in" / "report.md").symlink_to(outside / "report.md")
    else:
        (root / "in" / "report.md").write_text("old", encoding="utf-8")
    with pytest.raises(InvalidFile, match="could not be opened"):
        folder.take_from(private, name)
    assert not list(outside.iterdir())
    assert swap != "a file" or (root / "in" / "report.md").read_text(encoding="utf-8") == "old"


def test_a_call_has_so_much_memory_and_no_more(root, monkeypatch):
    folder = integration.Folder(root.resolve())
    call = integration.command_line("check", {"votes": "votes.csv"}, folder)
    code, printed, complaints = asyncio.run(integration._run(call, folder))
    assert (code, json.loads(printed)["votes"]["votes"]) == (0, 240), complaints
    monkeypatch.setattr(integration, "_MOST_MEMORY", 64 * 2**20)
    code, printed, complaints = asyncio.run(integration._run(call, folder))
    with pytest.raises(TrueupError):
        integration.answer_of("check", code, printed, complaints)


def test_halves_of_characters_in_a_file_are_no_part_of_an_answer():
    agreed = {"sentence": "\ud800 agrees", "items": ["\udfff"], "alpha": float("nan")}
    answer = integration.answer_of("agreement", 0, json.dumps(agreed), "")
    assert answer == {"sentence": "? agrees", "items": ["?"], "alpha": None}
    with pytest.raises(TrueupError) as refused:
        integration.answer_of("agreement", 2, "", "error: got \ud800\n")
    assert str(refused.value) == "got ?"


@real
def test_halves_of_characters_do_not_end_the_server(root):
    rows = [{"item": f"{k}\ud800", "labeler": f"{judge}\ud83d", "label": k % 2} for k in range(9) for judge in "ab"]
    (root / "halves.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    try:
        calls = [(tool, {"votes": "halves.jsonl"}) for tool in ("agreement", "check")]
        _, answers = answers_to(root, *calls)
        assert "\ud83d" not in str(answers)
        assert len(answers) == 2
    finally:
        (root / "halves.jsonl").unlink()


@pytest.mark.parametrize(("code", "printed"), [(2, ""), (3, "{}"), (-9, "")])
def test_a_command_that_failed_is_an_error_in_the_words_of_the_tools(code, printed):
    with pytest.raises(TrueupError, match=r"gold_drawn is about a gold file|ended with exit code"):
        integration.answer_of(
            "share", code, printed, "warning: x\nerror: --gold-drawn is about a gold file\n"[code == 3 :]
        )


def test_a_missing_package_and_a_wrong_root_are_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr("trueup.integrations.mcp.require", lambda *args, **options: None)
    with pytest.raises(InvalidFile, match="--root must name a folder, got 'nowhere'"):
        integration.serve("nowhere")
    monkeypatch.undo()
    monkeypatch.setattr("trueup._base.optional.is_installed", lambda module: False)
    with pytest.raises(MissingExtra, match=r"`trueup mcp` needs mcp, .*: pip install 'trueup\[mcp\]'"):
        integration.serve(str(tmp_path))


# With the package's client ------------------------------------------------------------------------------------------


@asynccontextmanager
async def session_with(root, *options):
    from mcp import ClientSession, StdioServerParameters, stdio_client

    # What is compiled is kept, as users have it: else each start compiles all of the package.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "trueup", "mcp", "--root", str(root), *options], env=environment
    )
    async with stdio_client(command) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


def answers_to(root, *calls, options=()):
    """What the server says to each call: whether it is an error, and the text."""

    async def ask():
        async with session_with(root, *options) as session:
            told = [await session.call_tool(tool, arguments) for tool, arguments in calls]
            names = [tool.name for tool in (await session.list_tools()).tools]
            return names, [(bool(one.is_error), one.content[0].text) for one in told]

    return asyncio.run(ask())


@real
def test_each_tool_answers_with_its_sentence_first(root):
    about = {"votes": "votes.csv"}
    both = {**about, "predictions": ["good.csv", "bad.csv"]}
    calls = {
        "check": about,
        "evaluate": {**about, "predictions": "good.csv", "metrics": ["accuracy"]},
        "compare": both,
        "share": {**about, "of": "1"},
        "agreement": about,
        "plan_checks": {**about, "n": 5},
        "gate": {**both, "answer": "compare", "not_worse_than": "bad", "candidate": "good", "margin": 0.02},
    }
    names, answers = answers_to(root, *calls.items())
    assert names == list(integration.TOOLS) == list(calls)
    begins = {
        "check": "240 votes of 4 labelers on 60 items; ",
        "evaluate": "accuracy of model is between 0.",
        "compare": "good may be no better than bad by accuracy: the difference is −0.",
        "share": "share of 1 is between 0.",
        "agreement": "Two labelers agree",
        "plan_checks": "5 of 60 items drawn at random",
        "gate": "undecided: accuracy of 'good' minus 'bad' is at least -0.02 with",
    }
    for name, (failed, text) in zip(calls, answers, strict=True):
        assert not failed, (name, text)
        key, sentence = next(iter(json.loads(text).items()))
        assert key == "sentence"
        assert sentence.startswith(begins[name])
        assert name != "evaluate" or sentence.endswith("(95% interval); rests on votes alone.")


@real
def test_the_server_refuses_hostile_requests_and_goes_on(root):
    calls = [call for call in BAD_CALLS if r"\ud800" not in str(call)]  # no JSON can carry it
    _, answers = answers_to(
        root, *calls, ("plan_checks", {"votes": "votes.csv", "n": 0}), ("check", {"votes": "votes.csv"})
    )
    *refused, by_the_command, last = answers
    assert len(refused) >= 200
    for failed, sentence in (*refused, by_the_command):
        assert failed
        assert "\n" not in sentence
        assert SECRET not in sentence
    assert not last[0]


@real
def test_files_are_written_only_where_the_user_allows_it(root):
    call = ("plan_checks", {"votes": "votes.csv", "n": 5, "out": "folder/draw.csv"})
    _, [(failed, text)] = answers_to(root, call)
    assert failed
    assert "only reads" in text
    assert not (root / "folder" / "draw.csv").exists()
    replacing = ("plan_checks", {"votes": "votes.csv", "n": 5, "out": "votes.csv"})
    _, [(failed, _), (replaced, text)] = answers_to(root, call, replacing, options=["--write"])
    assert not failed
    assert (root / "folder" / "draw.csv").read_text(encoding="utf-8").startswith("item,")
    assert replaced
    assert "must name a new file" in text
    (root / "folder" / "draw.csv").unlink()


UNREADABLE_CALLS = [  # which the package leaves without an answer
    {"name": "check", "arguments": {"votes": "\ud800.csv"}},
    {"name": "\ud800", "arguments": {}},
    {"name": "check", "arguments": {"votes": json.loads("[" * 500 + "]" * 500)}},
]
HOSTILE_CALLS = [  # as no client writes them
    {"name": "check", "arguments": {"votes": "x" * 10_000_000}},
    {"name": "check", "arguments": {"x" * 1_000_000: 1}},
    {"name": "check", "arguments": {"votes": "votes.csv", **{f"a{k}": k for k in range(100_000)}}},
]


@real
def test_lines_that_are_no_requests_do_not_end_the_server(root):
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        *("{", "[]", "null", '"x"', "[" * 5000, "\x00\xff"),
        *('{"jsonrpc": "1.0"}', '{"jsonrpc": "2.0", "id": {}, "method": 5}'),
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "no/such", "params": {}}),
        json.dumps({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": 5, "arguments": [1]}}),
        *(
            json.dumps({"jsonrpc": "2.0", "id": 10 + k, "method": "tools/call", "params": hostile})
            for k, hostile in enumerate([*HOSTILE_CALLS, *UNREADABLE_CALLS])
        ),
        json.dumps({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "check", "arguments": {}}}),
    ]
    command = [sys.executable, "-m", "trueup", "mcp", "--root", str(root)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(command, **pipes, text=True, encoding="latin-1")
    try:
        server.stdin.write("\n".join(lines) + "\n")
        server.stdin.flush()
        said = {}
        while not {4, *(10 + k for k in range(len(HOSTILE_CALLS)))} <= said.keys():
            answer = json.loads(server.stdout.readline())
            said[answer.get("id")] = answer
        assert "error" in said[2]
        assert "error" in said[3]
        assert said[4]["result"]["isError"]
        assert "check needs votes" in said[4]["result"]["content"][0]["text"]
        for k in range(len(HOSTILE_CALLS)):
            assert said[10 + k]["result"]["isError"]
            assert len(said[10 + k]["result"]["content"][0]["text"]) < 700
    finally:
        server.stdin.close()
        server.wait(timeout=60)
        server.stdout.close()
    assert server.returncode == 0


@real
def test_the_client_knows_the_tools_soon(root):
    """Time of the processor, since other programs may have it; the page has what was measured on the clock.

    Nearly all of it is the package's. Where the machine is slow or busy, what trueup adds to that is held instead.
    """

    def seconds(call):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        call()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    load = [sys.executable, "-c", "import mcp.server.lowlevel, mcp.server.stdio"]
    took = [(seconds(lambda: answers_to(root)), seconds(lambda: subprocess.run(load, check=True))) for _ in range(3)]
    ours, theirs = (min(column) for column in zip(*took, strict=True))
    assert 0 < ours <= max(FIRST_ANSWER, 1.5 * theirs), took


def test_the_command_starts_the_server(monkeypatch, tmp_path):
    called = []
    monkeypatch.setattr("trueup.integrations.mcp.serve", lambda root, *, write: called.append((root, write)))
    with pytest.raises(SystemExit) as left:
        main(["mcp", "--root", str(tmp_path), "--write"])
    assert (left.value.code, called) == (0, [(str(tmp_path), True)])
