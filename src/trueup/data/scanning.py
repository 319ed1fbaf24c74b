"""Votes in many files, read one after another: `Labels.scan`.

A scan knows its labelers and classes, and reads the votes when they are needed. Fits pass over them many times, so they
are encoded once, 4 bytes a vote and 8 an item, and kept in memory, or in temporary files where there are more than a
gigabyte of them.
"""

from __future__ import annotations

import tempfile
import warnings
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from glob import glob
from itertools import pairwise
from math import isnan
from operator import itemgetter
from os import PathLike, fspath
from pathlib import Path
from shutil import rmtree
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from trueup._base.clusters import map_at, open_client, places_for, places_of, wait_for
from trueup._base.engines import choose_engine
from trueup._base.types import Codes
from trueup._base.validation import preview
from trueup.data.building import VoteFormat
from trueup.data.encoding import Encoder, Vocabulary, check_names, numbers_from_text, vocabulary_from
from trueup.data.files import Format
from trueup.data.gold import Drawn, given_inclusion_probabilities
from trueup.data.partitions import (
    Facts,
    FirstLook,
    PartitionReader,
    SystemSource,
    VoteBlock,
    check_kinds,
    item_keys,
    regrouped_files,
)
from trueup.data.votes import AbstainPolicy, Duplicates, VoteNames, Votes
from trueup.exceptions import DataWarning, InvalidLabels, MissingFile, TrueupError

_V = TypeVar("_V", bound=Votes)
_MOST_HELD = 1_000_000_000  # bytes of encoded votes in memory; more go to temporary files
_ARRAYS = ("indptr", "indices", "data", "gold", "keys", "outputs", "vetted")
Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


@dataclass(frozen=True, eq=False, repr=False)
class LabelScan(VoteNames, Generic[_V]):
    """Votes in files that are read when they are needed; made by `Labels.scan`."""

    files: tuple[str, ...]
    reader: PartitionReader[_V]
    regroup: str | None = None  # the folder that votes go to if an item is spread over several files

    @property
    def labelers(self) -> Vocabulary:  # type: ignore[override]
        """The names of the labelers of all files, sorted."""
        return self.reader.labelers

    @property
    def classes(self) -> Vocabulary:  # type: ignore[override]
        """The names of the classes of all files."""
        return self.reader.classes

    @cached_property
    def answers(self) -> Vocabulary:  # type: ignore[override]
        """What a labeler can say: the classes and, if abstentions count as an answer, each abstention after them."""
        abstain = self.reader.options.abstain
        if self.reader.options.abstain_policy == "ignore":
            return self.classes
        return vocabulary_from(
            [*self.classes.tolist(), *(abstain if isinstance(abstain, list | tuple | set) else [abstain])]
        )

    @property
    def gold(self) -> Mapping[Hashable, Hashable]:
        """Vetted truths, as a mapping from item to class."""
        return self.reader.gold

    @property
    def gold_codes(self) -> Codes:
        """The classes of the vetted items, as positions in `classes`."""
        position = {name: k for k, name in enumerate(self.classes.tolist())}
        return np.array([position[name] for name in self.gold.values()], dtype=np.int32)

    @property
    def n_items(self) -> int:
        """Number of items of all files."""
        return sum(facts.n_items for facts in self.facts)

    @property
    def n_votes(self) -> int:
        """Number of votes of all files, repeated ones counted each time."""
        return sum(facts.n_votes for facts in self.facts)

    @property
    def n_repeats(self) -> int:
        """Number of votes beyond the first of a labeler on an item."""
        return sum(facts.n_repeats for facts in self.facts)

    @property
    def n_missing(self) -> int:
        """Rows declared missing and left out."""
        return sum(facts.n_missing for facts in self.facts)

    @property
    def vote_histogram(self) -> npt.NDArray[np.int64]:
        """How many items have no vote, one, two, …"""
        longest = max(len(facts.histogram) for facts in self.facts)
        padded = [np.pad(facts.histogram, (0, longest - len(facts.histogram))) for facts in self.facts]
        return np.asarray(np.sum(padded, axis=0))

    def __getattr__(self, name: str) -> Any:
        names = {field.name for field in fields(Votes)}  # which a class has no attributes for
        if name.startswith("_") or (name not in names and not hasattr(Votes, name)):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise InvalidLabels(
            f"the votes of a scan are not in memory, got a call that needs them all at once ({name}); "
            "read them all with scan.read(), or go through them with scan.partitions()"
        )

    def __repr__(self) -> str:
        rows = f", {self.n_items:,} items, {self.n_votes:,} votes" if self._encoded_at else ""
        return f"LabelScan({len(self.files):,} files, {self.n_labelers:,} labelers, {self.n_classes} classes{rows})"

    def partitions(self) -> Iterator[_V]:
        """The votes as `Labels`, file after file, all with the same labelers and classes."""
        for place, path in enumerate(self.grouped_files):
            yield _at(place, self.grouped_files, self.reader.read, path)

    def read(self) -> _V:
        """All votes in memory."""
        parts: list[Any] = list(self.partitions())
        while len(parts) > 1:  # in pairs, so that no vote is copied more than a few times
            pairs = [parts[k : k + 2] for k in range(0, len(parts), 2)]
            parts = [pair[0].merge(pair[1]) if len(pair) == 2 else pair[0] for pair in pairs]
        return parts[0]  # type: ignore[no-any-return]

    def with_gold(self, truths: Mapping[Any, Any], *, drawn: Drawn | None = None) -> LabelScan[_V]:
        """The same scan with vetted truths, which fits take for known."""
        unknown = [name for name in truths.values() if name not in set(self.classes.tolist())]
        if unknown:
            raise InvalidLabels(
                f"gold of a scan must name its classes {preview(self.classes, most=10)}, got {preview(unknown)}; name "
                "all with `classes`"
            )
        design = drawn if drawn is not None else getattr(truths, "drawn", "chosen")
        chances, at_random = given_inclusion_probabilities(design, list(truths))
        rows = zip(truths, chances.tolist(), at_random.tolist(), strict=True)
        both = {**self.reader.drawn, **{item: chance for item, chance, random in rows if random or not isnan(chance)}}
        n_random = sum(map(isnan, both.values()))
        if 0 < n_random < len(both):
            raise InvalidLabels(
                f"a simple random sample and gold of several chances do not add up, got {n_random} items drawn at "
                f"random beside {len(both) - n_random} with chances; pass the chance of each"
            )
        return LabelScan(self.files, replace(self.reader, gold={**self.gold, **truths}, drawn=both), self.regroup)

    def with_systems(
        self, systems: Sequence[SystemSource] = (), *, may_miss: bool = False, common: bool = False
    ) -> LabelScan[_V]:
        """The same votes in blocks with keys of items, what systems say, and the classes of items that were drawn."""
        drawn = {item: name for item, name in self.gold.items() if item in self.reader.drawn}
        chosen = {item: name for item, name in self.gold.items() if item not in drawn}
        reader = replace(self.reader, gold=chosen, vetted=drawn, keeps_keys=True, may_miss=may_miss, common=common)
        return LabelScan(self.files, replace(reader, systems=tuple(systems)), self.regroup)

    @property
    def grouped_files(self) -> tuple[str, ...]:
        """The files in which every item is in one: those of the scan, or those they were regrouped into."""
        return self._any_encoded.files

    @property
    def facts(self) -> tuple[Facts, ...]:
        """What is known of each file."""
        return self._any_encoded.facts

    @property
    def encoded(self) -> EncodedScan:
        """The votes as bare arrays, each file once: here, or on the workers of the client that is open."""
        is_here = choose_engine(offers=("scipy", "dask"), on_client=True) == "scipy"
        client = None if is_here else open_client()
        if _name_of(client) not in self._encoded_at:
            self._encoded_at[_name_of(client)] = self._encode(client)
        return self._encoded_at[_name_of(client)]

    def mapped(self, change: Callable[[VoteBlock], VoteBlock]) -> LabelScan[_V]:
        """The same items with every block changed, where the blocks are."""
        encoded, changed = self.encoded, LabelScan(self.files, self.reader, self.regroup)
        if encoded.client is None:
            blocks: Iterable[Any] = _BlockStore(map(change, encoded.blocks))
        else:
            held = list(encoded.blocks)
            blocks = map_at(encoded.client, places_of(encoded.client, held), change, held)
        changed._encoded_at[_name_of(encoded.client)] = replace(encoded, blocks=blocks)
        return changed

    @cached_property
    def _encoded_at(self) -> dict[str, EncodedScan]:
        return {}

    @property
    def _any_encoded(self) -> EncodedScan:
        return next(iter(self._encoded_at.values()), None) or self.encoded

    def _encode(self, client: Any | None) -> EncodedScan:
        files, options = self.files, self.reader.options
        blocks, facts = self._encode_files(files, client)
        if not self._is_grouped(files, facts):
            assert self.regroup is not None
            files = regrouped_files(files, self.reader, self.regroup)
            blocks, facts = self._encode_files(files, client)
        n_repeats = sum(of_file.n_repeats for of_file in facts)
        if n_repeats and options.duplicates == "keep" and options.run is None:
            warnings.warn(
                f"{n_repeats:,} votes repeat one of the same labeler on the same item and are kept; choose "
                '`duplicates="first"`, `duplicates="last"` or `duplicates="error"` to treat them otherwise',
                DataWarning,
                stacklevel=4,
            )
        n_gold = len(self.gold) + len(self.reader.vetted)
        n_vetted = sum(of_file.n_gold for of_file in facts)
        if n_vetted < n_gold:
            raise InvalidLabels(
                f"gold must be of items of the scan, got {n_gold - n_vetted} of {n_gold} that are in "
                "none of its files; leave them out"
            )
        # The keys were needed to check the files.
        return EncodedScan(files, blocks, tuple(replace(of_file, keys=of_file.keys[:0]) for of_file in facts), client)

    def _encode_files(self, files: tuple[str, ...], client: Any | None) -> tuple[Iterable[Any], list[Facts]]:
        if client is None:
            store, facts = _BlockStore(), []
            for place, path in enumerate(files):
                block, of_file = _at(place, files, self.reader.encode, path)
                store.add(block)
                facts.append(of_file)
            return store, facts
        # The blocks stay on the workers; all are results of tasks, so a lost one is computed again.
        shared = client.submit(tuple, (self.reader, tuple(files)), pure=False)
        places = places_for(client, [path.stat().st_size if path.exists() else 0 for path in map(Path, files)])
        both = map_at(client, places, _encode_file, [shared] * len(files), range(len(files)))
        held, about = (map_at(client, places, itemgetter(k), both) for k in range(2))
        return held, wait_for(client, client.submit(list, about, pure=False))

    def _is_grouped(self, files: Sequence[str], facts: Sequence[Facts]) -> bool:
        """Whether every item is in one file; an error where not and there is no folder to regroup into."""
        first = vocabulary_from([facts[0].ends[0]])
        for of_file, path in zip(facts, files, strict=True):
            check_kinds(first, vocabulary_from([of_file.ends[0]]), what="item", first_file=files[0], other_file=path)
        ranges = sorted(of_file.ends for of_file in facts)
        if all(before[1] < after[0] for before, after in pairwise(ranges)):
            return True
        keys = np.concatenate([of_file.keys for of_file in facts])
        keys.sort()
        spread = np.unique(keys[1:][keys[1:] == keys[:-1]])
        if not len(spread) or self.regroup is not None:
            return not len(spread)
        holding = [k for k, of_file in enumerate(facts) if (of_file.keys == spread[0]).any()][:2]
        items = self.reader.read(files[holding[0]]).items
        name = items[item_keys(items) == spread[0]].tolist()[0]
        raise InvalidLabels(
            f"every item must be in one file, got {len(spread):,} that are in several (first: {name!r} in "
            f"{files[holding[0]]!r} and {files[holding[1]]!r}); pass `regroup='a folder'` to write them by item"
        )


@dataclass(frozen=True, eq=False)
class EncodedScan:
    """A scan that was read once."""

    files: tuple[str, ...]  # in which every item is in one
    blocks: Iterable[Any]
    facts: tuple[Facts, ...]
    client: Any | None


def _name_of(client: Any | None) -> str:
    """What distinguishes where blocks are: this process, or the workers of a client."""
    return "" if client is None else str(client.id)


def _encode_file(shared: tuple[PartitionReader[Any], tuple[str, ...]], place: int) -> tuple[VoteBlock, Facts]:
    reader, files = shared
    return _at(place, files, reader.encode, files[place])  # type: ignore[no-any-return]


class _BlockStore:
    """Blocks in memory while they are small together, the others in temporary files that go with the store."""

    def __init__(self, blocks: Iterable[VoteBlock] = ()) -> None:
        self.blocks: list[VoteBlock] = []
        self.n_bytes = 0
        self.folder: Path | None = None
        for block in blocks:
            self.add(block)

    def add(self, block: VoteBlock) -> None:
        """Keep a block."""
        self.n_bytes += sum(getattr(block, name).nbytes for name in _ARRAYS)
        if self.n_bytes > _MOST_HELD:
            if self.folder is None:
                self.folder = Path(tempfile.mkdtemp(prefix="trueup-scan-"))
                weakref.finalize(self, rmtree, self.folder, ignore_errors=True)
            arrays = {}
            for name in _ARRAYS:
                path, values = self.folder / f"{len(self.blocks)}-{name}.npy", getattr(block, name)
                np.save(path, values)
                arrays[name] = np.load(path, mmap_mode="r") if len(values) else values
            block = VoteBlock(**arrays, n_columns=block.n_columns)
        self.blocks.append(block)

    def __iter__(self) -> Iterator[VoteBlock]:
        return iter(self.blocks)


def _at(place: int, files: Sequence[str], work: Callable[..., Any], *args: Any) -> Any:
    """What `work` gives; an error says which file of how many it was."""
    try:
        return work(*args)
    except TrueupError as error:
        raise type(error)(f"{error.sentence} (file {place + 1:,} of {len(files):,} of the scan)") from error


def scan_labels(
    cls: type[Any],
    paths: Paths,
    *,
    item: str = "item",
    labeler: str = "labeler",
    label: str = "label",
    run: str | None = None,
    classes: Sequence[Hashable] | None = None,
    missing: Any = (),
    abstain: Any = (),
    abstain_policy: AbstainPolicy = "ignore",
    duplicates: Duplicates = "keep",
    regroup: str | PathLike[str] | None = None,
    file_format: Format | None = None,
) -> LabelScan[Any]:
    """Votes in files that together are larger than memory; read when they are needed, file after file."""
    files = _files_of(paths)
    options = VoteFormat(item, labeler, label, run, None, classes, missing, abstain, abstain_policy, duplicates)
    looks = [_at(k, files, FirstLook.at, path, options, file_format) for k, path in enumerate(files)]
    from_text = all(look.from_text for look in looks)
    labelers = _joined([look.labelers for look in looks], "labeler", files, from_text=from_text)
    names = _joined([look.labels for look in looks], "label", files, from_text=from_text)
    if classes is None:
        seen: dict[Any, Any] = {}  # a file that shares no class with those before it, or writes one in another way
        for look, path in zip(looks, files, strict=True):
            plain = {name.strip().casefold() if isinstance(name, str) else name: name for name in look.labels.tolist()}
            differs = any(key in seen and seen[key] != name for key, name in plain.items())
            if seen and plain and (differs or not plain.keys() & seen.keys()):
                raise InvalidLabels(
                    "the files of a scan must have the same classes, got "
                    f"{preview(look.labels, most=6)} in {path!r} and {preview(list(seen.values()), most=6)} before it; "
                    "write them alike, or pass `classes=[…]`"
                )
            seen |= plain
        if len(names) < 2:
            raise InvalidLabels(
                f"votes must name at least two classes, got {preview(names)} in {len(files):,} files; pass "
                "`classes=[…]`"
            )
    text_items = any(look.from_text and not look.has_numbered_items for look in looks)
    named = names if classes is None else check_names("classes", classes)
    reader = PartitionReader(cls, options, file_format, labelers, named, text_items)
    return LabelScan(files, reader, None if regroup is None else fspath(regroup))


def _files_of(paths: Paths) -> tuple[str, ...]:
    files: list[str] = []
    for path in [fspath(name) for name in ([paths] if isinstance(paths, str | PathLike) else paths)]:
        matching = [path] if Path(path).is_file() else sorted(glob(path, recursive=True))  # noqa: PTH207 (absolute patterns too)
        files += [name for name in matching if Path(name).is_file()]
        if not matching or not files:
            raise MissingFile(f"there is no file for {path!r}; pass a path or a pattern such as 'votes/*.parquet'")
    if not files:
        raise MissingFile("there are no files to scan, got none; pass a path or a pattern such as 'votes/*.parquet'")
    if len(set(files)) < len(files):
        again = next(name for k, name in enumerate(files) if name in files[:k])
        raise InvalidLabels(f"every file must be named once, got {again!r} twice; leave one out")
    return tuple(files)


def _joined(found: Sequence[Vocabulary], role: str, files: Sequence[str], *, from_text: bool) -> Vocabulary:
    """The names of all files, sorted; text is numbers if all of it is."""
    encoder = Encoder(role)
    for names, path in zip(found, files, strict=True):
        check_kinds(found[0], names, what=role, first_file=files[0], other_file=path)
        encoder.add(names.tolist())
    codes, together = encoder.finish()
    return numbers_from_text(codes, together)[1] if from_text else together
