import io
import struct
import tarfile
import tracemalloc
import zipfile

import pytest
import tool_files

from trueup.adapters.content import Allowance, Archive, Content, Folder, Tar, Zip
from trueup.exceptions import InvalidFile


def zip_of(content: bytes) -> Zip:
    return Zip(lambda: io.BytesIO(content), "it", len(content))


def read(archive: Archive, name: str) -> bytes:
    with archive.open(name) as stream:
        return stream.read()


def tar_of(members: dict[str, bytes], mode: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def plain_zip(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


MEMBERS = {"a.json": b'{"a": 1}' * 100, "b/c.json": b"[]", "b/._c.json": b"x"}


def test_every_kind_of_archive_gives_the_same(tmp_path):
    pytest.importorskip("zstandard")
    for name, content in MEMBERS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    kinds = [
        Folder(tmp_path, "it"),
        zip_of(plain_zip(MEMBERS)),
        zip_of(tool_files.zip_with_zstandard(MEMBERS)),
        Tar(lambda: io.BytesIO(tar_of(MEMBERS, "w")), "it"),
        Tar(lambda: io.BytesIO(tar_of(MEMBERS, "w:gz")), "it"),
    ]
    for archive in kinds:
        assert {name: read(archive, name) for name in archive.names} == MEMBERS
        assert sorted(archive.ending_in("json")) == ["a.json", "b/c.json"]


def claiming(content: bytes, size: int) -> bytes:
    """A zip whose directory says that its one member unpacks to so many bytes."""
    at = content.rindex(b"PK\x01\x02")
    return content[: at + 24] + struct.pack("<I", size) + content[at + 28 :]


@pytest.mark.parametrize("packing", ["deflate", "zstandard"])
def test_a_member_that_claims_too_much_is_refused_unread(packing):
    pytest.importorskip("zstandard")
    make = plain_zip if packing == "deflate" else tool_files.zip_with_zstandard
    archive = zip_of(claiming(make({"summaries.json": b"[]"}), 4_000_000_000))
    with pytest.raises(InvalidFile, match=r"4,000,000,000 bytes.*unpack"):
        read(archive, "summaries.json")


def test_a_bomb_is_refused_before_it_fills_the_memory():
    bomb = plain_zip({f"{k}.json": b" " * 20_000_000 for k in range(4)})
    allowed = Allowance("it", 48_000_000)
    archive = zip_of(bomb)
    archive._allowance = allowed
    tracemalloc.start()
    try:
        read(archive, "0.json")
        read(archive, "1.json")
        with pytest.raises(InvalidFile):
            read(archive, "2.json")
        assert tracemalloc.get_traced_memory()[1] < 60_000_000
    finally:
        tracemalloc.stop()


def test_a_stream_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("trueup.adapters.content._FREE_TOTAL", 100_000)
    path = tmp_path / "e.json"
    path.write_text("[" + " " * 5_000_000 + "]", encoding="utf-8")
    with pytest.raises(InvalidFile, match="unpack"), Content(tool_files.gzipped(path)).json() as stream:
        list(stream.elements())
