"""Text made ready to print: safe for a terminal, and in lines that fit it.

File names, note texts and settings of a vault may contain characters that a terminal obeys: escape
sequences, C1 controls, line separators, marks that reverse the direction of writing, lone
surrogates. These are shown as escapes, in a pipe as well: it may end in a terminal or a prompt.

    printable        one line, everything that is not visible is escaped
    one_line         a name for other programs: only what ends a line or steers a terminal
    harmless         several lines, the same
    harmless_data    the same for every text in a value of JSON, for a reader that decodes it
    encode           a value as JSON: the one place for it, so that every door gives the same bytes
    safe_json        JSON, where an escape does not change the value
    wrapped          lines for people, cut between words
    columns_of       how wide a line is
"""

from __future__ import annotations

import json
import os
import re
from typing import Any
from unicodedata import east_asian_width

# C0 and C1 controls, line separators, the marks that change the direction of writing, and lone
# surrogates: bytes of a file name that are not UTF-8, or half a character of a JSON text.
_STEERING = (
    r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f"
    r"\ud800-\udfff"
)
_NOT_ONE_LINE = re.compile(rf"[\t\n\r{_STEERING}]")
_NOT_JSON = re.compile(rf"[{_STEERING}]")
_NOT_HARMLESS = re.compile(rf"[{_STEERING}]|\r(?!\n)")
_UNDECODED = re.compile("[\udc80-\udcff]")  # bytes of a file name that are not UTF-8
NARROWEST = 20  # columns: nobody reads a narrower window
# What a line begins with, and its text hangs on: a label and a gap, or the head of an error.
_LABEL = re.compile(r"\s*(?:ragvault: |fix: |\S+(?: \S+)? {2,})?")


def printable(text: str) -> str:
    """The text on one line, with every character escaped that is not visible.

    Bytes of a file name that are not UTF-8 become \\xNN.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else escaped(char) for char in text)


def harmless(text: str) -> str:
    """The text as it is, except for characters that steer a terminal or reverse its writing."""
    return _NOT_HARMLESS.sub(lambda found: escaped(found[0]), text)


def one_line(text: str) -> str:
    """A name as it is, except for characters that end its line or steer a terminal."""
    return _NOT_ONE_LINE.sub(lambda found: escaped(found[0]), text)


def harmless_data(value: Any) -> Any:
    """A value of JSON with only harmless texts."""
    if isinstance(value, dict):
        return {harmless_data(key): harmless_data(each) for key, each in value.items()}
    if isinstance(value, list):
        return [harmless_data(each) for each in value]
    return harmless(value) if isinstance(value, str) else value


def safe_json(encoded: str) -> str:
    """JSON text of the same value, without lone surrogates and what steers a terminal."""
    plain = encoded.encode("utf-8", "backslashreplace").decode()
    return _NOT_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", plain)


def encode(value: Any) -> str:
    """One line of JSON. Not by msgspec: a file name may contain bytes that are not Unicode."""
    import msgspec

    plain = msgspec.to_builtins(value, enc_hook=os.fspath)
    return safe_json(json.dumps(plain, ensure_ascii=False))


class Encodable:
    """A value whose JSON has its own fields."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The value as `--json` has it."""
        found: dict[str, Any] = json.loads(encode(self))
        return found


def escaped(char: str) -> str:
    """One character as Python writes it in a string: \\x9b, \\u202e."""
    if _UNDECODED.match(char):
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode()


def valid_unicode(text: str) -> str:
    """The text with lone surrogates, which tokenizers refuse, replaced by question marks.

    They come from file names and command lines that are not UTF-8.
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def columns_of(line: str) -> int:
    """Columns of a line on a terminal: Chinese and Japanese characters take two."""
    return len(line) + sum(east_asian_width(char) in "WF" for char in line if not char.isascii())


def wrapped(text: str, width: int) -> str:
    """The text with lines of at most `width` columns, as far as its words are not longer.

    The lines that one line becomes are indented as its text is. A width of 0 changes nothing.
    """
    if not width or all(len(line) <= width for line in text.split("\n")):
        return text
    return "\n".join(each for line in text.split("\n") for each in _lines(line, width))


def _lines(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    from textwrap import wrap

    label = _LABEL.match(line)
    head = label[0] if label else ""
    if len(head) > width // 3:
        head = line[: len(line) - len(line.lstrip())]
    hang = " " * len(head)
    # Only the text is wrapped: a long path stays behind its label.
    room = max(width - len(hang), NARROWEST)
    first, *rest = wrap(
        line[len(head) :],
        room,
        break_long_words=False,  # a path is copied as a whole
        break_on_hyphens=False,
    ) or [""]
    return [f"{head}{first}", *(f"{hang}{each}" for each in rest)]
