"""promptfoo: an assertion that knows what a person said of an answer, so that checks outlast the run they were made in.

A promptfooconfig.yaml names this file, or one with ``from trueup.integrations.promptfoo import get_assert``. promptfoo
starts a Python for each answer, so nothing that takes long is imported. `trueup.read_export` takes that for gold.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from trueup._base.cells import csv_text, safe_cell
from trueup.exceptions import InvalidFile, InvalidLabels, TrueupError

_LABEL, _OUTPUT, _SYSTEM = "label", "output", "system"
_VERDICTS = {"pass": True, "fail": False}


def get_assert(output: Any, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return a person's verdict on an answer; an answer that nobody checked passes, so that the test goes on.

    ``config: {checked: FILE}`` of the assertion names a csv with the column ``label``, pass or fail, and columns that
    say which answers a row is about: ``output``, ``system`` (the provider's label) and names of variables. A row is
    about an answer where all of them are equal, so a check holds again when the same answer comes again.

    Parameters
    ----------
    output : the answer.
    context : mapping. What promptfoo knows of the test.
    """
    try:
        passed, reason = _said_of(output, context)
    except TrueupError as error:
        return _result(False, error.sentence, is_checked=False)  # the test fails with the sentence; it is no vote
    if passed is None:
        return _result(True, reason, is_checked=False)
    return _result(passed, reason, is_checked=True)


def _said_of(output: Any, context: Mapping[str, Any]) -> tuple[bool | None, str]:
    """Whether the answer passes, None where nobody checked it, and why."""
    path = (context.get("config") or {}).get("checked")
    if not isinstance(path, str) or not path:
        raise InvalidFile(
            f"the assertion needs a file of checked answers, got {path!r}; write config: {{checked: FILE}}"
        )
    known = {**context.get("vars", {}), _OUTPUT: output, _SYSTEM: _system_of(context)}
    found = {
        row[_LABEL].strip().casefold()
        for row in _rows(path, known)
        if all(_same(row[name], known[name]) for name in row if name != _LABEL) and row[_LABEL].strip()
    }
    if len(found) > 1 or found - set(_VERDICTS):
        raise InvalidLabels(
            f"a checked answer is pass or fail, got {' and '.join(sorted(found))} in {path}; keep one of them"
        )
    return (_VERDICTS[min(found)], f"A person checked this answer: {min(found)}.") if found else (None, "Not checked.")


def _rows(path: str, known: Mapping[str, Any]) -> list[dict[str, str]]:
    """The rows of the table, without columns that say nothing of an answer."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns = [name for name in reader.fieldnames or [] if name in known or name == _LABEL]
            rows = [{name: row[name] or "" for name in columns} for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidFile(f"the checked answers must be a csv file that can be read, got {path!r}: {error}") from None
    if _LABEL not in columns or len(columns) < 2:
        raise InvalidFile(
            f"{path} must have the column label and one or more of {', '.join(sorted(known))}, got "
            f"{', '.join(columns) or 'none'}; rename a column"
        )
    return rows


def _system_of(context: Mapping[str, Any]) -> str:
    """The label of the provider, else its name."""
    provider = context.get("provider")
    about = provider if isinstance(provider, Mapping) else {"id": provider}
    return str(about.get("label") or about.get("id") or (about.get("options") or {}).get("id") or "")


def _same(cell: str, value: Any) -> bool:
    return cell.strip() in (str(value).strip(), safe_cell(str(value).strip()))


def _result(passed: bool, reason: str, *, is_checked: bool) -> dict[str, Any]:
    """A verdict as promptfoo has those of people; what nobody checked is marked, so that it is read as nothing."""
    part = {"pass": passed, "score": float(passed), "reason": reason}
    inside = {**part, "assertion": {"type": "human"}, "metadata": {"checked": is_checked}}
    return {**part, "componentResults": [inside]}


def keep_checks(
    results: str | PathLike[str],
    checked: str | PathLike[str],
    *,
    sheet: str | PathLike[str] | None = None,
    columns: Sequence[str] | None = None,
) -> int:
    """Write what people said of the answers of a run to the file that `get_assert` reads; returns the number of rows.

    Parameters
    ----------
    results : path. What ``promptfoo eval -o`` wrote; thumbs of the viewer count.
    checked : path. The csv file, which is written anew; the checks that the run took from it stay.
    sheet : path, optional. A table of ``trueup share --ask``, filled in.
    columns : sequence of str, optional. Which columns tell answers apart; by default the output and all variables.
    """
    from trueup._base.validation import preview
    from trueup._base.writing import write_text_safely
    from trueup.adapters import read_export, read_gold

    export = read_export(results, file_format="promptfoo")
    own = {"item", "test", "prompt_number", "repeat", _SYSTEM}
    names = list(columns) if columns is not None else [name for name in export.items if name not in own]
    lacking = [name for name in names if name not in export.items]
    if lacking or not names:
        raise InvalidLabels(
            f"`columns` must name columns of the answers, got {preview(lacking)}; there are "
            f"{preview(list(export.items))}"
        )
    gold = dict(export.gold)
    if sheet is not None:
        gold |= read_gold(sheet, labels=export.labels(), missing=[None, "cannot tell"])
    place = {item: at for at, item in enumerate(export.items["item"])}
    rows = [[*(safe_cell(export.items[name][place[item]]) for name in names), label] for item, label in gold.items()]
    rows = [list(row) for row in dict.fromkeys(map(tuple, rows))]
    write_text_safely(checked, csv_text([*names, _LABEL], rows))
    return len(rows)
