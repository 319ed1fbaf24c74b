"""Files are written whole or not at all, and what cannot be written is refused before the work."""

import os
import stat
import threading
import time

import pytest

from trueup._base.writing import check_readable, check_writable, locked, write_text_safely
from trueup.exceptions import InvalidFile, MissingFile


def test_a_file_is_replaced_whole_and_keeps_its_rights(tmp_path):
    path = tmp_path / "a.txt"
    write_text_safely(path, "één\n")
    assert path.read_bytes() == "één\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~_umask()
    path.chmod(0o600)
    write_text_safely(path, "two")
    assert path.read_text(encoding="utf-8") == "two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["error", "interrupt"])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_on_the_way_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, step, error):
    path = tmp_path / "a.txt"
    path.write_text("old", encoding="utf-8")

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("trueup._base.writing.os.fsync" if step == "fsync" else "pathlib.Path.replace", fail)
    with pytest.raises(InvalidFile if isinstance(error, OSError) else KeyboardInterrupt):
        write_text_safely(path, "new")
    monkeypatch.undo()
    assert path.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.txt"
    link.symlink_to(tmp_path / "real" / "a.txt")
    write_text_safely(link, "text")
    assert link.is_symlink()
    assert (tmp_path / "real" / "a.txt").read_text(encoding="utf-8") == "text"


def test_what_cannot_be_a_file(tmp_path):
    with pytest.raises(InvalidFile, match="must be a file, got a folder"):
        check_readable(tmp_path)
    assert check_readable(tmp_path, folders=True) == tmp_path
    with pytest.raises(InvalidFile, match="got a folder"):
        check_writable(tmp_path)
    with pytest.raises(MissingFile, match="make it first"):
        check_writable(tmp_path / "none" / "a.txt")
    with pytest.raises(InvalidFile):
        check_writable("a\0b")
    with pytest.raises(InvalidFile):
        write_text_safely(tmp_path / ("x" * 300), "text")


def test_a_lock_is_held_by_one_at_a_time(tmp_path):
    held, most = [], []

    def hold():
        for _ in range(20):
            with locked(tmp_path / "s.json", wait=60):
                held.append(1)
                most.append(len(held))
                time.sleep(0.0005)
                held.pop()

    threads = [threading.Thread(target=hold) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(most), max(most)) == (80, 1)
    assert not list(tmp_path.iterdir())
