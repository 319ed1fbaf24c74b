"""`trueup storage`, and `trueup vet` on a storage."""

import json

import pytest

import trueup as tu
from trueup.storage import open_storage

pytestmark = pytest.mark.filterwarnings("error")
URL = "sqlite:///test.db"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The files of a session, in the folder that commands run in."""
    sim = tu.simulate.baseline(n_items=40, random_state=0)
    votes = ["item,labeler,label"]
    items, labelers, answers, _ = sim.labels.vote_table()
    votes += [f"i{item},w{who},{'ny'[label]}" for item, who, label in zip(items, labelers, answers, strict=True)]
    (tmp_path / "votes.csv").write_text("\n".join(votes), encoding="utf-8")
    rows = [f"i{item},{'ny'[label]}" for item, label in enumerate(sim.predictions)]
    (tmp_path / "predictions.csv").write_text("\n".join(["item,prediction", *rows]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def stored(run_main):
    """Run a command of `trueup vet` on the session q3 of a storage."""

    def run(command, *words, name="q3"):
        return run_main("vet", command, *words, "--storage", URL, "--name", name)

    return run


@pytest.fixture
def begun(stored):
    """The items that wait for an answer."""
    ran = stored("ask", "votes.csv", "predictions.csv", "-n", "3", "--noise", "majority", "--json")
    assert ran.code == 0, ran.err
    return [one["item"] for one in json.loads(ran.out)["items"]]


def test_a_session_goes_on_in_the_storage(stored, begun, folder):
    parsed = stored("tell", f"{begun[0]}=y", f"{begun[1]}=n", "--who", "ann")
    assert (parsed.code, "Answers taken: 2, of which new: 2." in parsed.out) == (0, True)
    assert stored("skip", begun[2]).code == 0
    status = json.loads(stored("status", "--json").out)
    assert (status["n_vetted"], status["waiting"]) == (2, [])
    assert stored("ask", "-n", "1").code == 0
    assert {path.name for path in folder.iterdir()} <= {"predictions.csv", "votes.csv", "test.db", "test.db-turns"}
    log = open_storage(URL).events("q3")
    assert [event.kind for event in log] == ["ask"] * 3 + ["tell", "tell", "cannot tell", "ask"]
    assert [event.who for event in log[3:5]] == ["ann", "ann"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("status", "--storage", URL), "needs both --storage and --name, got one"),
        (("status", "--name", "q3"), "needs both --storage and --name, got one"),
        (("status",), "named by its file or by --storage and --name, got neither"),
        (("status", "--storage", "sqlite:///no.db", "--name", "q3"), "there is no storage sqlite:///"),
        (("ask", "--storage", "sqlite:///no.db", "--name", "q3"), "there is no storage sqlite:///"),
        (("tell", "i0=y", "--storage", URL, "--name", "q4"), "there is no session 'q4' in this storage, got 'q3'"),
        (("status", "x.json", "--storage", URL, "--name", "q3"), "has no file, got 'x.json'"),
        (("skip", "--storage", URL, "--name", "q3"), "items to skip must be named, got none"),
        (("start", "votes.csv", "--storage", URL, "--name", "q5"), "begins with votes and predictions, got 1 files"),
        (("ask", "votes.csv", "nowhere.csv", "--storage", URL, "--name", "q5"), "nowhere.csv"),
        (("ask", "--seed", "9", "--storage", URL, "--name", "q3"), "--seed is fixed when a session begins"),
        (("status", "--storage", "mysql://a/b", "--name", "q3"), "must be SQLite or PostgreSQL, got 'mysql'"),
    ],
)
@pytest.mark.usefixtures("begun")
def test_what_makes_no_sense_is_one_sentence(run_main, folder, words, problem):
    ran = run_main("vet", *words)
    assert ran.code == 2
    assert problem in ran.err
    assert ran.err.count("\n") == 1
    assert not (folder / "no.db").exists()


@pytest.mark.usefixtures("begun")
def test_changed_files_are_refused(stored, folder):
    with (folder / "votes.csv").open("a", encoding="utf-8") as stream:
        stream.write("\ni0,w9,y")
    ran = stored("status")
    assert (ran.code, "must be as it was when the session 'q3' in sqlite:///" in ran.err) == (2, True)


def test_session_files_are_imported_and_exported(run_main, stored, folder):
    assert (
        run_main("vet", "ask", "old.json", "votes.csv", "predictions.csv", "-n", "3", "--noise", "majority").code == 0
    )
    old = json.loads((folder / "old.json").read_text(encoding="utf-8"))
    first = old["test"]["log"][0]["item"]
    assert run_main("vet", "tell", "old.json", f"{first}=y").code == 0
    old = json.loads((folder / "old.json").read_text(encoding="utf-8"))
    ran = run_main("storage", "import", URL, "old.json", "--name", "q3")
    assert (ran.code, "Events read: 4." in ran.out) == (0, True), ran.err
    (folder / "deeper").mkdir()
    assert run_main("storage", "export", URL, "deeper/new.json", "--name", "q3").code == 0
    new = json.loads((folder / "deeper" / "new.json").read_text(encoding="utf-8"))
    assert new["files"]["votes"]["path"] == "../votes.csv"
    assert new["test"]["settings"] == old["test"]["settings"]
    for was, now in zip(old["test"]["log"], new["test"]["log"], strict=True):
        assert was.items() <= now.items()
    one, two = (json.loads(run_main("vet", "status", path, "--json").out) for path in ("old.json", "deeper/new.json"))
    three = json.loads(stored("status", "--json").out)
    assert one["estimates"] == two["estimates"] == three["estimates"]
    assert "which exists" in run_main("storage", "import", URL, "old.json", "--name", "q3").err
    assert "must not exist yet" in run_main("storage", "export", URL, "deeper/new.json", "--name", "q3").err


def test_a_storage_is_listed(run_main, stored, begun):
    stored("tell", f"{begun[0]}=y")
    ran = run_main("storage", "list", URL)
    assert ran.code == 0
    assert [word in ran.out for word in ("q3", "active test", "UTC")] == [True] * 3
    assert ran.err.count("\n") == 1, "one line says how it is kept"
    record = json.loads(run_main("storage", "list", URL, "--json").out)
    assert [(one["name"], one["answers"], one["events"]) for one in record["sessions"]] == [("q3", 1, 4)]


@pytest.mark.usefixtures("begun")
def test_a_backup_is_restored(run_main, folder):
    assert run_main("storage", "backup", URL, "kept.db").code == 0
    assert "is a new file" in run_main("storage", "backup", URL, "kept.db").err
    assert "Sessions restored: 1." in run_main("storage", "restore", "kept.db", "sqlite:///again.db").out
    assert open_storage("sqlite:///again.db").events("q3") == open_storage(URL).events("q3")
    assert "into an empty database" in run_main("storage", "restore", "kept.db", URL).err
    assert run_main("storage", "restore", "nowhere.db", "sqlite:///x.db").code == 2
    assert run_main("storage", "restore", "votes.csv", "sqlite:///x.db").code == 2
    assert "Sessions copied: 1." in run_main("storage", "copy", URL, "sqlite:///copy.db").out
    assert "Nothing to do" in run_main("storage", "upgrade", URL).out
    assert not list(folder.glob("*backup*"))


def test_a_person_is_forgotten(run_main, stored, begun):
    stored("tell", f"{begun[0]}=y", "--who", "ann")
    ran = run_main("storage", "forget", URL, "ann")
    assert "Events whose name was replaced: 1." in ran.out
    assert b"ann" not in (open_storage(URL).events("q3")[3].who or "").encode()
