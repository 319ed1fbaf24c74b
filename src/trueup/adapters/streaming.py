"""JSON read piece by piece: the elements of a long list are decoded one at a time and need not fit into memory at once.

The decoder is that of the standard library; what is added is that its text arrives in blocks, and that the reader says
which lists and objects it walks through and which it takes whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any

from trueup.exceptions import InvalidFile, quoted

_BLOCK = 2**20
_NEAR_END = 16  # the longest literal is -Infinity; what fails this close to the end may be cut off
_BLANKS = " \t\r\n\ufeff"
_DEEPEST_GLIMPSE = 6
_ELEMENTS_GLIMPSED = 20


class JsonStream:
    """A cursor in JSON text.

    ``for key in stream.members()`` walks through an object and ``for element in stream.elements()`` through a list; in
    the body of the first, the member is taken by `value`, `elements` or `members`, once.

    Examples
    --------
    >>> import io
    >>> stream = JsonStream(io.StringIO('{"a": [1, 2], "b": 3}'), "it")
    >>> {key: list(stream.elements()) if key == "a" else stream.value() for key in stream.members()}
    {'a': [1, 2], 'b': 3}
    """

    def __init__(self, stream: IO[str], who: str) -> None:
        self._stream, self._who = stream, who
        self._text, self._at, self._ended = "", 0, False
        self._line = 1
        self._scan = json.JSONDecoder().raw_decode

    def next_character(self) -> str:
        """The next character that is not blank, or nothing at the end; the cursor stands on it."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _BLANKS:
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._fill():
                return ""

    def value(self) -> Any:
        """The next value, whole."""
        self.next_character()
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except RecursionError:
                raise InvalidFile(
                    f"{self._who} is nested too deeply, got objects in objects from line {self._line_at(self._at)} on; "
                    "check that it is the export itself"
                ) from None
            except json.JSONDecodeError as error:
                cut_off = error.msg.startswith("Unterminated") or error.pos >= len(self._text) - _NEAR_END
                beyond = error.pos - self._at
                if not (cut_off and self._fill()):
                    raise self._damage(error.msg, self._at + beyond) from None
                continue
            except ValueError as error:  # a number of thousands of digits
                raise self._damage(f"{error!s:.60}", self._at) from None
            if end < len(self._text) or not self._fill():  # a number at the very end may go on in the next block
                self._at = end
                return value

    def elements(self) -> Iterator[Any]:
        """The elements of the list that comes next, one at a time."""
        yield from (self.value() for _ in self._steps("[", "]", "list"))

    def members(self) -> Iterator[str]:
        """The keys of the object that comes next; the caller takes the member of each before the next key."""
        for _ in self._steps("{", "}", "object"):
            key = self.value()
            if not isinstance(key, str):
                raise self._damage(f"the key {key!r:.20}", self._at)
            self._expect(":")
            yield key

    def documents(self) -> Iterator[Any]:
        """All values to the end: one, or one a line."""
        while self.next_character():
            yield self.value()

    def records(self) -> Iterator[Any]:
        """The elements of a list, of several in a row, or all values that are no list."""
        if self.next_character() != "[":
            yield from self.documents()
        while self.next_character() == "[":
            yield from self.elements()

    def check_end(self) -> None:
        """Stop where something comes after the value that was read, which would be lost."""
        if self.next_character():
            raise self._damage("something after its end", self._at)

    def _steps(self, opening: str, closing: str, what: str) -> Iterator[None]:
        if self.next_character() != opening:
            raise self._damage(f"no {what} where one should be", self._at)
        self._at += 1
        if self.next_character() == closing:
            self._at += 1
            return
        while True:
            yield
            character = self.next_character()
            if character == closing:
                self._at += 1
                return
            self._expect(",")

    def _expect(self, character: str) -> None:
        if self.next_character() != character:
            raise self._damage(f"no {character!r} where one should be", self._at)
        self._at += 1

    def _fill(self) -> bool:
        """More text; blocks grow with what is kept, so that a long value is not decoded again and again."""
        if self._ended:
            return False
        self._line += self._text.count("\n", 0, self._at)
        kept = self._text[self._at :]
        block = self._stream.read(max(_BLOCK, len(kept)))
        self._ended = not block
        self._text, self._at = kept + block, 0
        return not self._ended

    def _line_at(self, position: int) -> int:
        return self._line + self._text.count("\n", 0, position)

    def _damage(self, what: str, position: int) -> InvalidFile:
        place = "its end" if self._ended and position >= len(self._text) else f"line {self._line_at(position)}"
        return InvalidFile(
            f"{self._who} is not whole JSON, got {quoted(what)} at {place}; export it again, or check that it was "
            "copied whole"
        )


def glimpse(text: str) -> tuple[Any, str]:
    """What the start of a JSON text holds, as far as it goes, and the text after the first value, if that has ended.

    Lists keep their first elements and objects the members that were seen, so that a layout can be recognised from the
    first bytes of a file of any length. What is damaged ends the glimpse.

    Examples
    --------
    >>> glimpse('[{"id": 1, "data": {"text": "lo')
    ([{'id': 1, 'data': {'text': 'lo'}}], '')
    """
    value, end = _glimpse(text, 0, 0)
    return value, "" if end is None else text[end:].lstrip(_BLANKS)


def _glimpse(text: str, at: int, depth: int) -> tuple[Any, int | None]:
    """A value and where it ends; None where the text ends before it."""
    at = _skip(text, at)
    try:
        return json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError):
        pass
    opening = text[at : at + 1]
    if opening == '"':
        return text[at + 1 : at + 200], None
    if opening not in ("{", "[") or depth > _DEEPEST_GLIMPSE:
        return None, None
    members: dict[str, Any] = {}
    elements: list[Any] = []
    at = _skip(text, at + 1)
    while at < len(text) and len(elements) < _ELEMENTS_GLIMPSED:
        key = ""
        if opening == "{":
            key, end = _glimpse(text, at, depth + 1)
            if end is None or not isinstance(key, str):
                break
            at = _skip(text, end) + 1
        value, end = _glimpse(text, at, depth + 1)
        if opening == "{":
            members[key] = value
        elif value is not None or end is not None:
            elements.append(value)
        if end is None:
            break
        at = _skip(text, end)
        if text[at : at + 1] != ",":
            break
        at += 1
    return members if opening == "{" else elements, None


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at
