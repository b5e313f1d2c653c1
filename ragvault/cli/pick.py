"""The picker: the newest notes, results while you type, a preview of the section; Enter opens it.

    pick       open it in the terminal; returns when the user leaves
    Picker     the state: what is typed, what was found, which result is selected
    Searcher   a thread that searches for what was typed last, so that typing never waits

    run_picker the picker of the program: it asks the resident process

The picker itself knows nothing of indexes: it gets a function that searches, one that opens a
result and one that lists values for filters.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate, takewhile
from textwrap import TextWrapper
from typing import TYPE_CHECKING

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.data_structures import Point
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    Float,
    FloatContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    VSplit,
    Window,
)
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.output import Output
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth

from ragvault.cli.search import search_function
from ragvault.cli.start import this_caller
from ragvault.errors import RagvaultError
from ragvault.plan import Words
from ragvault.text.analyze import Analyzer, highlight
from ragvault.text.printable import harmless, printable

if TYPE_CHECKING:
    from ragvault.answer.contents import Kind
    from ragvault.answer.results import Response, Result

LIMIT = 30  # results
NEWEST = "since:1970"  # what is searched for while nothing is typed: notes by date, newest first
PAGE = 5  # lines that the preview scrolls
TAB = 4  # columns
WIDE = 100  # columns from which the preview stands beside the list
KEYS = "↑↓ move  ⏎ open  ^Y copy link  ⇥ filters  esc leave"
FILTERS = {
    "tag:": "notes with a tag, or one below it",
    "path:": "notes whose path has this text",
    "title:": "notes whose title has this text",
    "since:": "notes from a date on: 2024, 7d, yesterday",
    "before:": "notes from before a date",
    "has:task": "passages with a task",
    "has:code": "passages with code",
    "has:table": "passages with a table",
    "linkto:": "notes that link to a note",
    "in:": "a vault",
}
STYLE = Style.from_dict(
    {
        "prompt": "bold",
        "selected": "reverse",
        "title": "bold",
        "place": "ansicyan",
        "faint": "ansibrightblack",
        "match": "bold ansiyellow",
        "notice": "ansiyellow",
    }
)


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to one query: results, and a line for the user."""

    query: str = ""
    results: Sequence[Result] = ()
    notice: str = ""
    words: str = ""  # what was searched for, without filters
    error: PermissionError | None = None  # nothing can be found: the picker ends with it


Search = Callable[[str], Found]
OpenResult = Callable[["Result"], None]
FilterValues = Callable[[str], Iterable[str]]  # of a filter such as `tag:`


class Searcher:
    """Searches in a thread of its own, always for the last query it was given.

    A query that is replaced before its turn is never searched for. `report` gets every answer.
    """

    def __init__(self, search: Search, report: Callable[[Found], None]) -> None:
        self._search, self._report = search, report
        self._changed = threading.Condition()
        self._next: str | None = None
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="picker", daemon=True)
        self._thread.start()

    def ask(self, query: str) -> None:
        with self._changed:
            self._next = query
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()

    def _run(self) -> None:
        while (query := self._wait()) is not None:
            try:
                found = self._search(query)
            except Exception as error:  # whatever it is, the next query is searched for
                found = _not_found(query, error)
            self._report(found)

    def _wait(self) -> str | None:
        with self._changed:
            while self._next is None and not self._ended:
                self._changed.wait()
            query, self._next = self._next, None
            return None if self._ended else query


def _not_found(query: str, error: Exception) -> Found:
    if isinstance(error, PermissionError):
        return Found(query, error=error)
    if isinstance(error, RagvaultError):
        return Found(query, notice=f"{error}. {error.fix}")
    return Found(query, notice=f"the search failed: {type(error).__name__}")


class Picker:
    """What is shown. The lists of text it returns are prompt_toolkit's (style, text) pairs."""

    def __init__(self, search: Search, open_result: OpenResult, values: FilterValues) -> None:
        self.found = Found()
        self.at = 0
        self.scrolled = 0  # lines of the preview, from where the match is
        self.message = ""
        self.app: Application[int] | None = None
        self._open = open_result
        self.buffer = Buffer(
            multiline=False,
            completer=ThreadedCompleter(FilterCompleter(values)),
            on_text_changed=lambda _: self._typed(),
        )
        self.searcher = Searcher(search, self._answered)

    # --- What happens ---

    def start(self, query: str) -> None:
        if query:
            self.buffer.insert_text(query)
        else:
            self._typed()

    def _typed(self) -> None:
        self.message = ""
        self.searcher.ask(self.buffer.text.strip())

    def _answered(self, found: Found) -> None:
        """From the thread that searches: results may not change while the screen is drawn."""
        if self.app and self.app.loop:
            with suppress(RuntimeError):  # the picker has just been closed
                self.app.loop.call_soon_threadsafe(self._received, found)

    def _received(self, found: Found) -> None:
        """Show an answer, unless something else is typed by now."""
        if found.error and self.app and not self.app.is_done:
            self.app.exit(exception=found.error)
        elif found.query == self.buffer.text.strip():
            self._show(found)

    def _show(self, found: Found) -> None:
        self.found, self.at, self.scrolled = found, 0, 0
        if self.app:
            self.app.invalidate()

    def move(self, by: int) -> None:
        self.at = max(0, min(self.at + by, len(self.found.results) - 1))
        self.scrolled = 0
        self.message = ""

    @property
    def selected(self) -> Result | None:
        results = self.found.results
        return results[self.at] if self.at < len(results) else None

    def open_selected(self) -> None:
        """Open the selected result; a terminal editor has the screen until it ends."""
        if (result := self.selected) is None:
            return
        try:
            self._open(result)
        except RagvaultError as error:
            self.message = f"{error}. {error.fix}"

    def copy_selected(self, output: Output) -> None:
        """Copy the link of the selected result with OSC 52, which also works over SSH."""
        if (result := self.selected) is None:
            return
        text = base64.b64encode(result.uri.encode()).decode()
        output.write_raw(f"\x1b]52;c;{text}\x07")
        output.flush()
        self.message = "copied the link, if your terminal allows it"

    # --- What is shown ---

    @property
    def is_searching(self) -> bool:
        return self.buffer.text.strip() != self.found.query

    @property
    def columns(self) -> int:
        return self.app.output.get_size().columns if self.app else WIDE

    @property
    def is_wide(self) -> bool:
        """Whether the preview stands beside the list; below it otherwise."""
        return self.columns >= WIDE

    @property
    def width(self) -> int:
        """Columns of the list, and of the preview."""
        return (self.columns - 1) // 2 if self.is_wide else self.columns

    def list_text(self) -> StyleAndTextTuples:
        lines: StyleAndTextTuples = []
        several = len({result.vault for result in self.found.results}) > 1
        for at, result in enumerate(self.found.results):
            vault = f"{result.vault}: " if several else ""
            style = "class:selected " if at == self.at else ""
            title = shortened(printable(label(result)), self.width - 2)
            band = f"  {result.band}" if result.band else ""
            place = f"{vault}{result.note}:{result.line}"
            lines += [
                (f"{style}class:title", f" {title} \n"),
                ("class:place", f"   {shortened(printable(place), self.width - 3 - len(band))}"),
                ("class:faint", f"{band}\n"),
            ]
        return lines

    def list_cursor(self) -> Point:
        """The list scrolls to keep this in view: the second line of the selected result."""
        return Point(0, 2 * self.at + 1) if self.found.results else Point(0, 0)

    def preview_text(self) -> StyleAndTextTuples:
        result = self.selected
        if result is None:
            return [("class:faint", "" if self.buffer.text else " Type to search your notes.")]
        lines = preview_lines(harmless(result.text), self.found.words, self.width)
        wanted = max(0, result.line - result.lines[0] - 2)  # two lines before
        first = next((at for at, (number, _) in enumerate(lines) if number >= wanted), 0)
        top = max(0, min(first + self.scrolled, len(lines) - 1))
        self.scrolled = top - first
        return [part for _, line in lines[top:] for part in (*line, ("", "\n"))]

    def status_text(self) -> StyleAndTextTuples:
        if self.message or self.found.notice:
            return [("class:notice", f" {printable(self.message or self.found.notice)}")]
        if self.is_searching and self.buffer.text.strip():
            return [("class:faint", " searching …")]
        return [("class:faint", f" {KEYS}")]

    def count_text(self) -> StyleAndTextTuples:
        count = len(self.found.results)
        if not self.found.query:
            return [("class:faint", " newest notes ")] if count else []
        return [("class:faint", f" {count} {'result' if count == 1 else 'results'} ")]


def label(result: Result) -> str:
    """The title and the headings below it, without a heading that repeats the title."""
    title = result.title or result.note
    headings = list(result.headings)
    return " > ".join([title, *(headings[1:] if headings[:1] == [title] else headings)])


@lru_cache(LIMIT)  # a preview is drawn again with every key
def matches(text: str, words: str) -> list[tuple[int, int]]:
    """Where the words of a query are in a text, by the rules of the keyword index."""
    return highlight(text, Words(words), _analyzer()) if words else []


@cache
def _analyzer() -> Analyzer:
    return Analyzer()


@lru_cache(LIMIT)
def preview_lines(text: str, words: str, width: int) -> list[tuple[int, StyleAndTextTuples]]:
    """A text wrapped between words, with matches marked; each line with its number in the text."""
    wrap = TextWrapper(
        max(width, 20), drop_whitespace=False, replace_whitespace=False, break_on_hyphens=False
    )
    text = text.expandtabs(TAB)
    marks = matches(text, words)
    lines: list[tuple[int, StyleAndTextTuples]] = []
    at = 0
    for number, line in enumerate(text.split("\n")):
        for piece in wrap.wrap(line) or [""]:
            lines.append((number, _marked(text, at, at + len(piece), marks)))
            at += len(piece)
        at += 1
    return lines


def _marked(
    text: str, start: int, end: int, marks: Sequence[tuple[int, int]]
) -> StyleAndTextTuples:
    """A part of a text, with the marks that reach into it."""
    parts: StyleAndTextTuples = []
    done = start
    for first, last in marks:
        inside = max(first, start), min(last, end)
        if inside[0] < inside[1]:
            parts += [("", text[done : inside[0]]), ("class:match", text[inside[0] : inside[1]])]
            done = inside[1]
    return [*parts, ("", text[done:end])]


def shortened(text: str, width: int) -> str:
    """A text that fits into so many columns; some letters need two."""
    if get_cwidth(text) <= width:
        return text
    used = accumulate(map(get_cwidth, text))
    return f"{text[: sum(1 for _ in takewhile(lambda so_far: so_far < width, used))]}…"


class FilterCompleter(Completer):
    """Tab: filters, and behind a filter such as `tag:` its values in the vault."""

    def __init__(self, values: FilterValues) -> None:
        self._values = values

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        word = document.get_word_before_cursor(WORD=True)
        name, colon, typed = word.partition(":")
        if colon and f"{name}:" in FILTERS:
            for value in self._values(name):
                if typed.lower() in value.lower():
                    text = f'"{value}"' if " " in value else value
                    yield Completion(text, start_position=-len(typed), display=printable(value))
            return
        for each, meaning in FILTERS.items():
            if each.startswith(word.lower()):
                yield Completion(each, start_position=-len(word), display_meta=meaning)


def pick(
    search: Search,
    open_result: OpenResult,
    values: FilterValues,
    *,
    query: str = "",
    input_: Input | None = None,
    output: Output | None = None,
) -> int:
    """Show the picker until the user leaves; returns the exit code.

    Raises PermissionError if the indexes or the settings cannot be read.
    """
    picker = Picker(search, open_result, values)
    app: Application[int] = Application(
        layout=_layout(picker),
        key_bindings=_keys(picker),
        style=STYLE,
        full_screen=True,
        input=input_,
        output=output,
    )
    app.ttimeoutlen = 0.05  # seconds: Escape leaves at once, and is no part of another key
    app.timeoutlen = 0.2
    picker.app = app
    try:
        return app.run(pre_run=lambda: picker.start(query))
    finally:
        picker.searcher.close()


def _layout(picker: Picker) -> Layout:
    def results() -> Window:
        control = FormattedTextControl(
            picker.list_text, get_cursor_position=picker.list_cursor, show_cursor=False
        )
        return Window(control, height=Dimension(min=2, weight=1), width=Dimension(weight=1))

    def preview() -> Window:
        return Window(
            FormattedTextControl(picker.preview_text),
            height=Dimension(min=2, weight=1),
            width=Dimension(weight=1),
        )

    beside = VSplit([results(), Window(width=1, char="│", style="class:faint"), preview()])
    below = HSplit([results(), Window(height=1, char="─", style="class:faint"), preview()])
    typed = Window(BufferControl(picker.buffer), height=1)
    body = HSplit(
        [
            VSplit(
                [
                    Window(FormattedTextControl([("class:prompt", " Search: ")]), width=9),
                    typed,
                    Window(FormattedTextControl(picker.count_text), dont_extend_width=True),
                ],
                height=1,
            ),
            Window(height=1, char="─", style="class:faint"),
            ConditionalContainer(beside, Condition(lambda: picker.is_wide)),
            ConditionalContainer(below, Condition(lambda: not picker.is_wide)),
            Window(FormattedTextControl(picker.status_text), height=1),
        ]
    )
    menu = Float(CompletionsMenu(max_height=12), xcursor=True, ycursor=True)
    return Layout(FloatContainer(body, [menu]), focused_element=typed)


def _keys(picker: Picker) -> KeyBindings:
    keys = KeyBindings()
    choosing = has_completions

    @keys.add("escape", eager=True)
    def _leave(event: KeyPressEvent) -> None:
        if picker.buffer.complete_state:
            picker.buffer.cancel_completion()
        else:
            event.app.exit(result=0)

    @keys.add("c-c")
    def _interrupt(event: KeyPressEvent) -> None:
        event.app.exit(result=130)

    @keys.add("up", filter=~choosing)
    @keys.add("c-p")
    def _up(event: KeyPressEvent) -> None:
        picker.move(-1)

    @keys.add("down", filter=~choosing)
    @keys.add("c-n")
    def _down(event: KeyPressEvent) -> None:
        picker.move(1)

    @keys.add("pageup")
    def _preview_up(event: KeyPressEvent) -> None:
        picker.scrolled -= PAGE

    @keys.add("pagedown")
    def _preview_down(event: KeyPressEvent) -> None:
        picker.scrolled += PAGE

    @keys.add("enter")
    async def _open(event: KeyPressEvent) -> None:
        if picker.buffer.complete_state:  # take the filter that is chosen
            picker.buffer.complete_state = None
            return
        await run_in_terminal(picker.open_selected)

    @keys.add("c-y")
    def _copy(event: KeyPressEvent) -> None:
        picker.copy_selected(event.app.output)

    @keys.add("tab")
    def _filters(event: KeyPressEvent) -> None:
        if picker.buffer.complete_state:
            picker.buffer.complete_next()
        else:
            picker.buffer.start_completion(select_first=False)

    return keys


# --- In the program ---


def run_picker(query: str = "", vaults: Sequence[str] = ()) -> int:
    """The picker over the vaults that `ragvault search --vault …` would search."""
    from ragvault.types import SearchRequest

    answer = search_function()

    def search(query: str) -> Found:
        request = SearchRequest(
            query or NEWEST,
            this_caller().local_time(),
            LIMIT,
            vaults=tuple(vaults),
            compare="never",  # of a large vault that takes longer than the search, with every key
        )
        found = answer(request)
        return Found(query, found.results, _notice(found), found.plan.text)

    return pick(search, open_result, filter_values, query=query)


def _notice(found: Response) -> str:
    if not found.results:
        return "nothing found"
    return "" if found.likely else "No good match. These are the closest notes."


def open_result(result: Result) -> None:
    """Open a result at its line, in Obsidian or the editor."""
    from ragvault.cli.note import open_place
    from ragvault.vault import Vault

    vault = Vault.open(result.vault)
    open_place(vault, vault.place(f"{result.note}:{result.line}"))


def filter_values(name: str) -> list[str]:
    """Values of a filter in the vaults that are known, most frequent first."""
    from ragvault.vault import Vault, known

    if name == "in":
        return [each.name for each in known()]
    kinds: dict[str, Kind] = {"tag": "tags", "path": "folders", "linkto": "notes"}
    if name not in kinds:
        return []
    with suppress(RagvaultError):  # several vaults and no default: there is no one list
        items = Vault.open(None).list(kinds[name]).items
        return [getattr(item, "name", "") or getattr(item, "title", "") for item in items]
    return []
