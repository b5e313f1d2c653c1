"""The conformance vault: every rule about vaults, as small vaults with their answers.

A case in conformance/*.toml is a few files and what must be found in them. It is written to a
real folder and read by the whole room: walk, read, parse, resolve, chunk, date. Only what a case
expects is compared:

    notes         exactly these are notes            kinds, lang    of the chunks, in order
    skipped       at least these are reported        has            of all chunks together
    title, encoding, date, date_source               indexed_text   each stands in some chunk
    aliases, tags, headings, blocks                  not_indexed    none stands in any chunk
    properties    at least these, of these types     warnings       each is part of one; [] is none
    empty         properties without a value         links          all of a note, in order
    missing       no such properties                 of             the same for another note

A case is about its `note`, by default the first it lists. Of links, and of what was skipped, the
keys that are written are compared and no others. Tags and the names of properties have no case.
The languages of one chunk are sorted, with a space between them.

`files_hex` holds bytes that are not UTF-8, `symlinks` leads from a link to where it points,
`sparse` from a file to its size, with nothing on the disk; `../` is outside the vault.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragvault.config.settings import Config
from ragvault.notes.chunk import chunk
from ragvault.notes.dates import date_of, read_daily_notes
from ragvault.notes.links import Anchors, Resolver
from ragvault.notes.parse import parse
from ragvault.notes.read import Read, read_file
from ragvault.notes.walk import walk
from ragvault.types import Date, Link, Note, Passage, Skipped

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

AREAS = ("files", "frontmatter", "tags", "links", "blocks", "dates", "types")
TOUCHED = datetime(2020, 2, 2, tzinfo=timezone.utc)  # the mtime of every file unless a case says

Case = dict[str, Any]


def cases_of(area: str) -> list[Case]:
    source = Path(__file__).parent / "conformance" / f"{area}.toml"
    return list(tomllib.loads(source.read_text(encoding="utf-8"))["case"])


CASES = [case for area in AREAS for case in cases_of(area)]
each_case = pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])


# ---- a case becomes a folder


def write(case: Case, root: Path) -> None:
    """The files of a case, all of them equally old."""
    contents = {path: text.encode() for path, text in case.get("files", {}).items()}
    contents |= {path: bytes.fromhex(hexed) for path, hexed in case.get("files_hex", {}).items()}
    for path, data in contents.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    for path, size in case.get("sparse", {}).items():
        with (root / path).open("wb") as file:
            file.truncate(size)
    for path, target in case.get("symlinks", {}).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).symlink_to(target)
    for path in (*contents, *case.get("sparse", {})):
        touched = case.get("mtime", {}).get(path, TOUCHED).timestamp()
        os.utime(root / path, (touched, touched))


def everything_in(folder: Path) -> dict[str, Any]:
    """All there is below a folder: names, bytes, times."""
    found: dict[str, Any] = {}
    for top, folders, files in os.walk(folder):
        for path in (Path(top) / name for name in (*folders, *files)):
            regular = path.is_file() and not path.is_symlink()
            found[str(path)] = (path.lstat().st_mtime_ns, path.read_bytes() if regular else None)
    return found


@pytest.fixture
def vault(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Vault]:
    """The case as read; and whatever the case, nothing was written."""
    root = tmp_path / "vault"
    root.mkdir()
    write(case, root)
    monkeypatch.chdir(root)
    before = everything_in(tmp_path)
    yield Vault(root, case)
    assert everything_in(tmp_path) == before


# ---- a folder becomes what was found in it


class Vault:
    """One case, read by the code under test."""

    def __init__(self, root: Path, case: Case) -> None:
        self.root, self.case = root, case
        self.config = msgspec.convert(case.get("settings", {}), Config)
        self.walked = walk(root, self.config.walk)
        self.skipped: list[Skipped] = list(self.walked.skipped)
        self.files: dict[str, Read] = {}
        for file in self.walked.files:
            got = read_file(root, file, self.config.walk.max_bytes)
            if isinstance(got, Skipped):
                self.skipped.append(got)
            else:
                self.files[file.path] = got
        self.notes = {path: self._parsed(path, got) for path, got in self.files.items()}

    def _parsed(self, path: str, got: Read) -> Note:
        return parse(
            path,
            got.text,
            self.config.parse,
            self.config.links,
            encoding=got.encoding,
            warnings=got.warnings,
        )

    @cached_property
    def resolver(self) -> Resolver:
        def anchors(path: str) -> Anchors:
            return self.notes[path].headings, self.notes[path].blocks

        return Resolver(self.notes.values(), anchors)

    @property
    def note(self) -> str:
        """The path of the note the case is about."""
        listed = [*self.case.get("files", {}), *self.case.get("files_hex", {})]
        return str(self.case["expect"].get("note", listed[0]))

    def passages(self, path: str) -> list[Passage]:
        return chunk(self.notes[path], self.config.chunk)[1] if path in self.notes else []

    def text(self, path: str) -> str:
        return "\n".join(passage.text for passage in self.passages(path))

    def line(self, path: str | None, offset: int | None) -> int | None:
        if path is None or offset is None:
            return None
        return self.notes[path].text.count("\n", 0, offset) + 1

    def link(self, path: str, link: Link) -> dict[str, Any]:
        """Everything there is to say about one link."""
        target = self.resolver.resolve(path, link)
        return {
            "from": path,
            "kind": link.kind,
            "form": link.form,
            "target": link.target,
            "anchor": list(link.anchor),
            "text": link.text,
            "line": link.line,
            "to": target.path,
            "to_line": self.line(target.path, target.start),
            "anchor_found": target.anchor_found,
            "status": target.status,
            "via": target.via,
            "others": list(target.others),
        }

    def date(self, path: str) -> Date:
        commit = self.case.get("git", {}).get(path)
        return date_of(
            path,
            self.notes[path].properties,
            mtime_ns=self.files[path].file.mtime_ns,
            git=commit and commit.timestamp(),
            daily=read_daily_notes(self.root)[0],
        )


# ---- what was found, in the words of the case


def same_keys(expected: list[Mapping[str, Any]], got: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was got, each with the keys that the expected one in its place has."""
    if len(expected) != len(got):
        return got
    return [{key: g.get(key) for key in e} for e, g in zip(expected, got, strict=True)]


def skipped(vault: Vault, path: str, expected: Any) -> Any:
    got = [{"path": s.path, "reason": s.reason} for s in vault.skipped]
    return [s for s in got if s in expected] if all(e in got for e in expected) else got


def properties(vault: Vault, path: str, expected: Any) -> Any:
    got = {name.casefold(): value for name, value in vault.notes[path].properties.items()}
    return {name: got.get(name) for name in expected}


def absent(vault: Vault, path: str, expected: Any) -> Any:
    names = {name.casefold() for name in vault.notes[path].properties}
    return [name for name in expected if name not in names]


def empty(vault: Vault, path: str, expected: Any) -> Any:
    return [name for name, value in vault.notes[path].properties.items() if value is None]


def warned(vault: Vault, path: str, expected: Any) -> Any:
    got = list(vault.notes[path].warnings)
    return expected if got and all(any(e in g for g in got) for e in expected) else got


def blocks(vault: Vault, path: str, expected: Any) -> Any:
    return {name: vault.line(path, at) for name, at in vault.notes[path].blocks.items()}


def links(vault: Vault, path: str, expected: Any) -> Any:
    return same_keys(expected, [vault.link(path, link) for link in vault.notes[path].links])


def indexed(vault: Vault, path: str, expected: Any) -> Any:
    text = vault.text(path)
    return expected if all(words in text for words in expected) else text


def not_indexed(vault: Vault, path: str, expected: Any) -> Any:
    text = vault.text(path)
    return text if any(words in text for words in expected) else expected


def dated(vault: Vault, path: str, expected: date) -> date:
    """A moment, or its day where the case names a day."""
    moment = datetime.fromtimestamp(vault.date(path).at, tz=timezone.utc)
    return moment if isinstance(expected, datetime) else moment.date()


def headings(vault: Vault, path: str, expected: Any) -> Any:
    return [[h.text, h.level, h.line] for h in vault.notes[path].headings]


GOT: dict[str, Callable[[Vault, str, Any], Any]] = {
    "notes": lambda vault, path, expected: sorted(vault.notes),
    "skipped": skipped,
    "title": lambda vault, path, expected: vault.notes[path].title,
    "encoding": lambda vault, path, expected: vault.notes[path].encoding,
    "aliases": lambda vault, path, expected: list(vault.notes[path].aliases),
    "tags": lambda vault, path, expected: sorted(t.casefold() for t in vault.notes[path].tags),
    "properties": properties,
    "missing": absent,
    "empty": empty,
    "warnings": warned,
    "headings": headings,
    "blocks": blocks,
    "links": links,
    "indexed_text": indexed,
    "not_indexed": not_indexed,
    "kinds": lambda vault, path, expected: [c.kind for c in vault.passages(path)],
    "lang": lambda vault, path, expected: [" ".join(sorted(c.lang)) for c in vault.passages(path)],
    "has": lambda vault, path, expected: sorted({h for c in vault.passages(path) for h in c.has}),
    "date": dated,
    "date_source": lambda vault, path, expected: vault.date(path).source,
}


def exactly(value: Any) -> str:
    """A value to be compared: 1 is not true, a date is not its text, and keys have no order."""
    if isinstance(value, Mapping):
        return repr({key: exactly(value[key]) for key in sorted(value)})
    return repr([exactly(item) for item in value]) if isinstance(value, list) else repr(value)


def differences(vault: Vault, path: str, expect: Mapping[str, Any]) -> Iterator[str]:
    for word, expected in expect.items():
        if word == "of":
            for other, more in expected.items():
                yield from differences(vault, other, more)
        elif word != "note":
            got = GOT[word](vault, path, expected)
            if exactly(got) != exactly(expected):
                yield f"{path}: {word}\n  expected  {expected!r}\n  got       {got!r}"


@each_case
def test_the_vault_is_read_as_its_rule_says(case: Case, vault: Vault) -> None:
    found = list(differences(vault, vault.note, case["expect"]))
    if found:
        pytest.fail("\n".join([case["name"], f"rule: {case['rule']}", *found]), pytrace=False)


@each_case
def test_every_offset_stands_on_the_line_it_names(case: Case, vault: Vault) -> None:
    for path, note in vault.notes.items():
        if note.layout.places:  # a canvas: its text is not the file's
            continue
        named = [(h.start, h.line) for h in note.headings]
        named += [(link.start, link.line) for link in note.links]
        assert [vault.line(path, at) for at, _ in named] == [line for _, line in named]


def test_no_two_cases_have_one_name_and_each_names_its_area() -> None:
    names = [case["name"] for case in CASES]
    assert len(set(names)) == len(names)
    assert [n for area in AREAS for n in names if n.startswith(f"{area}: ")] == names
