"""ragvault search: parse the command line, search, and print the results.

    arguments        the command line as a SearchArguments, and nothing else
    answer_search    SearchArguments + Caller -> Reply; reads nothing from its own process
    parse_search     for a watcher: the arguments of a search that was typed in another process
    answer_request   SearchRequest + Caller -> SearchAnswer: the search itself, for every door
    search_function  SearchRequest -> Response, for programs that run for long: picker, MCP

The words of a query need no quotes, and may begin with dashes, as options do:

    ragvault search raft leader                 a query
    ragvault search -tag:inbox --callout-icon   a query
    ragvault search -n5 -qv bread               options, and a query

An argument with one dash belongs to the query unless it has exactly the form of an option: it does
if it has a space, a letter that no option has, or letters where -n expects a number. One with two
dashes belongs to it unless it is an option, or nearly one, which is a mistake. What could be both
is an option; after `--` nothing is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import cache, wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from ragvault.cli import console, options
from ragvault.cli.commands import OWN_OPTIONS, search_for
from ragvault.cli.start import Caller, Reply, report_if_slow, this_caller, write_reply
from ragvault.errors import RagvaultError, UsageError
from ragvault.text.printable import printable, wrapped
from ragvault.text.spelling import misspelt

if TYPE_CHECKING:
    from pathlib import Path

    from ragvault.answer.results import Response, SearchAnswer
    from ragvault.answer.vaults import OpenCorpus
    from ragvault.cli.results import Page
    from ragvault.corpus import LocalCorpus
    from ragvault.service.watcher import ResidentIndexes
    from ragvault.types import SearchRequest
    from ragvault.vault import Vault

app = typer.Typer()

HELP = {"-h": False, "--help": False}  # options even where help is left to another process
ONE_WORD = ("tag", "lang", "has")  # operators whose values have no spaces
# Formats that go to a model as they are: the budget covers everything they write.
FOR_MODELS = ("context", "markdown")
# Formats in which every line counts as a match: they list nothing that is not likely to answer.
FOR_PIPES = ("paths", "grep")
THREADS = 3  # searches at a time without a resident process
HYPOTHESIS_WORDS = 100  # that are searched as keywords where there is no query
PROMPT = 2  # lines of the screen: what was typed, and the next prompt


# How results are written.
Format = Literal["text", "json", "jsonl", "paths", "grep", "markdown", "context"]


@dataclass(frozen=True, slots=True)
class SearchArguments:
    """A search as it was typed; `flags` are settings, as key=value."""

    query: str
    vaults: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    limit: int | None = None
    hypothesis: str | None = None
    all_matches: bool = False
    format: str = "text"
    explain: bool = False
    nul: bool = False
    require_fresh: bool = False
    quiet: bool = False
    verbose: bool = False

    def request(self, caller: Caller) -> SearchRequest:
        """What is searched for. JSON says whether an index is out of date; text and --quiet only
        where that is cheap."""
        from ragvault.types import SearchRequest

        return SearchRequest(
            self.query,
            caller.local_time(),
            self.limit,
            self.hypothesis,
            all_matches=self.all_matches,
            also=self.also,
            vaults=self.vaults,
            settings=self.flags,
            compare="never" if self.quiet else "always" if self.format == "json" else "small",
            require_fresh=self.require_fresh,
            explain=self.explain,
        )


class QueryCommand(TyperCommand):
    """A command whose arguments are the words of a query, which may begin with a dash."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        takes_value = HELP | {
            name: not getattr(param, "is_flag", True)
            for param in self.get_params(ctx)
            for name in (*param.opts, *param.secondary_opts)
        }
        rest: list[str] = super().parse_args(
            ctx, args if ctx.resilient_parsing else _query_last(args, takes_value)
        )
        return rest


def arguments(
    query: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUERY", help="A question, some words, or operators such as tag:recipe."
        ),
    ] = None,
    vaults: Annotated[
        list[str] | None,
        typer.Option(
            "--vault",
            metavar="PATH|NAME",
            autocompletion=options.vault_names,
            help="Vaults to search: a,b or repeated. Default: the vault around the current "
            "folder, else the default vault, else all.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Maximum number of results.")
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME",
            autocompletion=options.profile_names,
            help="Ranking profile to use.",
        ),
    ] = None,
    set_: options.Set = None,
    rerank: Annotated[
        bool | None,
        typer.Option(
            "--rerank/--no-rerank",
            help="Let a second model reread the best results: slightly better, up to 1 s slower.",
        ),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(
            "--also",
            metavar="QUERY",
            help="Another query, such as a rewording; repeatable. All are answered as one list.",
        ),
    ] = None,
    hypothesis: Annotated[
        str | None,
        typer.Option(
            "--hypothesis",
            metavar="TEXT",
            help="Text of a likely answer; its vector is searched (HyDE), also without a query.",
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget", metavar="TOKENS", min=1, help="Return only what fits into this many tokens."
        ),
    ] = None,
    min_confidence: Annotated[
        float | None,
        typer.Option(
            "--min-confidence",
            metavar="X",
            min=0,
            max=1,
            help="Show only results with at least this confidence, from 0 to 1.",
        ),
    ] = None,
    all_matches: Annotated[
        bool, typer.Option("--all-matches", help="Show results even if none is a good match.")
    ] = False,
    per_note: Annotated[
        int | None,
        typer.Option(
            "--per-note", metavar="N", min=1, help="Show up to N sections of a note, not only one."
        ),
    ] = None,
    passages: Annotated[
        bool | None,
        typer.Option(
            "--passages/--sections", help="Show the matching passage, or its whole section."
        ),
    ] = None,
    neighbours: Annotated[
        int | None,
        typer.Option(
            "--neighbours", metavar="N", min=0, help="Add N passages before and after each one."
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show how each result got its score.")
    ] = False,
    require_fresh: Annotated[
        bool,
        typer.Option("--require-fresh", help="Exit with 3 if files changed since the last index."),
    ] = False,
    no_resident: Annotated[
        bool,
        typer.Option(
            "--no-resident", help="Answer in this process: ask no resident process, and start none."
        ),
    ] = False,  # start.py reads it, before Typer is imported
    format_: Annotated[Format, typer.Option("--format", help="Output format.")] = "text",
    nul: Annotated[
        bool, typer.Option("-0", help="Print paths separated by NUL, for xargs -0.")
    ] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> SearchArguments:
    """Search your notes with vectors, keywords and links.

    Operators narrow a search: "a phrase" -word OR ( ) #tag [property:value] tag: path: file:
    title: alias: heading: content: link: linkto: linkedby: has: lang: code: task: task-todo:
    task-done: created: modified: date: since: before: in: - ragvault help operators explains them.

    ragvault search why is my loaf dense

    ragvault search rye tag:recipe since:2024 -n 3 --explain

    ragvault search "feeding a starter" --also "refresh the culture" -n 3

    ragvault search "feeding a starter" --format context --budget 2000

    ragvault search gluten --format paths -0 | xargs -0 wc -w

    ragvault search "#recipe rye OR spelt"
    """
    flags = [
        *([f"search.profile={profile}"] if profile else ()),
        *([f"rerank.enabled={str(rerank).lower()}"] if rerank is not None else ()),
        *(["budget.enabled=true", f"budget.tokens={budget}"] if budget else ()),
        *([f"limit.min_confidence={min_confidence}"] if min_confidence is not None else ()),
        *(_per_note_flags(per_note) if per_note else ()),
        *(_stage_flags("parents", unit=_UNITS[passages]) if passages is not None else ()),
        *(_stage_flags("parents", neighbours=neighbours) if neighbours is not None else ()),
        *(set_ or ()),
    ]
    return SearchArguments(
        query=query_of(query) if query else _words_of(hypothesis),
        also=tuple(also or ()),
        vaults=tuple(vaults or ()),
        flags=tuple(flags),
        limit=limit,
        hypothesis=hypothesis,
        all_matches=all_matches,
        format=_format(format_, json, nul),
        explain=explain,
        nul=nul,
        require_fresh=require_fresh,
        quiet=quiet,
        verbose=verbose,
    )


_UNITS = {True: "passage", False: "section"}


def _per_note_flags(most: int) -> list[str]:
    """Rows of a note, from as many passages at least."""
    from ragvault.config import profiles

    rows = _stage_flags("parents", per_note=most)
    return (
        [*rows, f"diversify.per_note={most}"]
        if most > profiles.config("default").diversify.per_note
        else rows
    )


def _stage_flags(stage: str, **settings: Any) -> list[str]:
    """Settings of a stage, which is turned on: a profile may have turned it off."""
    pairs = {"enabled": "true", **settings}
    return [f"{stage}.{key}={value}" for key, value in pairs.items()]


def _format(named: Format, json: bool, nul: bool) -> str:
    wanted = "json" if json else named
    if nul and wanted not in ("text", "paths"):
        raise UsageError(f"-0 prints paths, but --format is {wanted}", fix="leave one of them out")
    return "paths" if nul else wanted


@app.command(cls=QueryCommand)
@wraps(arguments)
def search_command(**typed: Any) -> None:
    with report_if_slow("searching", quiet=console.is_quiet()):
        reply = _answer(_with_volume(arguments(**typed)), this_caller())
    write_reply(reply)
    if reply.code:
        raise typer.Exit(reply.code)


def answer_search(
    typed: SearchArguments,
    caller: Caller,
    open_index: OpenCorpus[Vault, LocalCorpus] | None = None,
    remember: Callable[[SearchAnswer], None] = lambda _: None,
) -> Reply:
    """The whole search, its errors included, for any process that answers it.

    `remember` gets the answer before it is written.
    """
    try:
        return _answer(typed, caller, open_index, remember)
    except RagvaultError as error:
        return Reply("", tuple(console.error_lines(error)), error.exit_code)


def _answer(
    typed: SearchArguments,
    caller: Caller,
    open_index: OpenCorpus[Vault, LocalCorpus] | None = None,
    remember: Callable[[SearchAnswer], None] = lambda _: None,
) -> Reply:
    from ragvault.answer.vaults import record_access
    from ragvault.cli.results import Page, formatted, nul_paths

    def written(answer: SearchAnswer) -> str:
        return formatted(Page(answer, caller), typed.format)

    vaults, answer = answer_request(
        typed.request(caller),
        caller,
        open_index,
        written=written if typed.format in FOR_MODELS else None,
        quotes=typed.format == "context",
    )
    remember(answer)
    if typed.format == "context":
        record_access(vaults, answer, caller.now)
    page = Page(answer, caller, typed.explain, typed.all_matches)
    notices = () if typed.quiet else tuple(map(printable, _notices(typed, page)))
    page = page._replace(lines=_screen(typed, caller, notices))
    out = nul_paths(page) if typed.nul else formatted(page, typed.format)
    return Reply(out, notices, answer.exit_code)


def _screen(typed: SearchArguments, caller: Caller, notices: Sequence[str]) -> int:
    """Lines of the screen that results may fill; 0, which is all, where the user chose how many."""
    if not caller.lines or not caller.terminal or typed.limit is not None or typed.explain:
        return 0
    written = wrapped("\n".join(notices), caller.columns).count("\n") + 1 if notices else 0
    return max(caller.lines - PROMPT - written, 1)


def _notices(typed: SearchArguments, page: Page) -> Iterator[str]:
    """What the reader must know, and the vaults that a search of all vaults left out."""
    from ragvault.vault import unsearchable

    answer, caller = page.answer, page.caller
    yield from answer.notices(_watched(answer, caller))
    if typed.format in FOR_PIPES and answer.results and not page.matches:
        yield "no good match; to list the closest notes, add --all-matches"
    if not typed.vaults and not answer.answers[0].plan.vaults:
        for name in unsearchable(caller.environ, caller.cwd):
            yield f"{name} skipped: its folder or index is missing"


def _watched(answer: SearchAnswer, caller: Caller) -> list[Path]:
    """The vaults with changed files that a watcher is indexing."""
    changed = [each.root for each in answer.answers if each.pending]
    if not changed:
        return []
    from ragvault.service.process import watcher_of

    return [root for root in changed if watcher_of(root, caller.environ)]


def parse_search(args: Sequence[str]) -> SearchArguments | None:
    """What `ragvault ARGS` searches for; None if the caller's own process must answer.

    It must answer everything but a search, help and mistakes.
    """
    if not args or args[0] != "search":
        return None
    with suppress(Exception):
        # In a copy of the context: the volume of this process stays as it is.
        return copy_context().run(_parsed, args[1:])
    return None


def _parsed(args: Sequence[str]) -> SearchArguments | None:
    console.reset()
    typed = _parser().main(list(args), "search", standalone_mode=False)
    return _with_volume(typed) if isinstance(typed, SearchArguments) else None


def _with_volume(typed: SearchArguments) -> SearchArguments:
    """-q and -v may be anywhere; the last one counts."""
    return replace(typed, quiet=console.is_quiet(), verbose=console.is_verbose())


@cache
def _parser() -> Any:
    """The same command without --help, which would be printed here."""
    plain = typer.Typer(add_completion=False)
    plain.command(cls=QueryCommand)(arguments)
    command = typer.main.get_command(plain)
    command.add_help_option = False
    return command


# --- the search itself ---


def answer_request(
    request: SearchRequest,
    caller: Caller,
    open_index: OpenCorpus[Vault, LocalCorpus] | None = None,
    *,
    written: Callable[[SearchAnswer], str] | None = None,
    quotes: bool = False,
) -> tuple[Sequence[Vault], SearchAnswer]:
    """The vaults that were searched, and what they answered. Raises RagvaultError.

    For `written` and `quotes` see search_vaults.
    """
    from ragvault.answer.vaults import search_vaults
    from ragvault.vault import open_once, vaults_to_search

    if not request.query:
        request = replace(request, query=_words_of(request.hypothesis))
    vaults = vaults_to_search(
        request.query,
        request.vaults,
        now=request.now,
        hypothesis=request.hypothesis,
        flags=request.settings,
        environ=caller.environ,
        cwd=caller.cwd,
    )
    answer = search_vaults(
        vaults,
        request,
        open_index or open_once(),
        compare=request.compare,
        require_fresh=request.require_fresh,
        written=written,
        quotes=quotes,
    )
    return vaults, answer


def _words_of(hypothesis: str | None) -> str:
    """The words of a likely answer as a query: nothing in it is an operator."""
    words = re.findall(r"\w+", hypothesis or "")
    if not words:
        raise UsageError("missing argument 'QUERY'", fix="ragvault search --help")
    return " ".join(words[:HYPOTHESIS_WORDS]).casefold()


def search_function(*, resident: bool = True) -> Callable[[SearchRequest], Response]:
    """A function that answers requests of this process, in any of its threads.

    The resident process answers, so that all programs share one model. If there is none and none
    may be started, indexes and models stay open here. Raises RagvaultError.
    """
    from concurrent.futures import ThreadPoolExecutor

    from msgspec import to_builtins

    from ragvault.service.protocol import WatcherUnavailable, ask_or_start

    # An index belongs to one thread: a few of them keep theirs.
    threads = ThreadPoolExecutor(THREADS, thread_name_prefix="answer")

    @cache
    def indexes() -> ResidentIndexes:
        from ragvault.models.load import ModelPool
        from ragvault.service.watcher import ResidentIndexes

        return ResidentIndexes(ModelPool())

    def here(request: SearchRequest) -> Response:
        from ragvault.answer.results import respond

        indexes().close_outdated()
        _, answer = answer_request(request, this_caller(), indexes())
        return respond(answer, explain=request.explain)

    def search(request: SearchRequest) -> Response:
        if resident:
            with suppress(WatcherUnavailable):
                asked = {"request": to_builtins(request), "around": this_caller()._asdict()}
                return decoded_response(ask_or_start({"op": "search", **asked}))
        return threads.submit(here, request).result()

    return search


def encoded_response(
    request: Mapping[str, Any], caller: Caller, open_index: OpenCorpus[Vault, LocalCorpus]
) -> dict[str, Any]:
    """The answer to the request of another process, errors included, as a message."""
    from msgspec import convert

    from ragvault.answer.results import respond
    from ragvault.types import SearchRequest

    asked = replace(convert(request, SearchRequest), now=caller.local_time())  # with its time zone
    try:
        _, answer = answer_request(asked, caller, open_index)
    except RagvaultError as error:
        return {"error": str(error), "fix": error.fix, "code": error.exit_code}
    return {"response": respond(answer, explain=asked.explain).to_dict()}


def decoded_response(message: Mapping[str, Any]) -> Response:
    """The answer in a message. Raises the RagvaultError that is in it."""
    from msgspec import convert

    from ragvault.answer.results import Response

    if "error" in message:
        error = RagvaultError(message["error"], fix=message["fix"])
        error.exit_code = message["code"]
        raise error
    return convert(message["response"], Response)


# --- the words of a query ---


def query_of(words: Sequence[str]) -> str:
    """Several arguments as one query. The quotes of a value, which the shell removed, come back:
    since:"last week" arrives as one argument, `since:last week`.
    """
    return " ".join(words if len(words) == 1 else map(_quoted, words))


def _quoted(word: str) -> str:
    name, colon, value = word.lstrip("-").partition(":")
    if not colon or name in ONE_WORD or not any(map(str.isspace, value)) or '"' in value:
        return word
    from ragvault.query.operators import OPERATORS

    return f'{word[: -len(value)]}"{value}"' if name.lower() in OPERATORS else word


def _query_last(args: Sequence[str], takes_value: dict[str, bool]) -> list[str]:
    """The same arguments, with a query that begins with a dash moved behind `--`."""
    options, words = _options_and_words(args, takes_value)
    dashed = any(word.startswith("-") for word in words)
    return [*options, "--", *words] if dashed else list(args)


def _options_and_words(
    args: Sequence[str], takes_value: dict[str, bool]
) -> tuple[list[str], list[str]]:
    """Options with their values, and everything else."""
    options: list[str] = []
    words: list[str] = []
    rest = iter(args)
    for arg in rest:
        if arg == "--":
            words += rest
        elif _is_option(arg, takes_value):
            options.append(arg)
            options += _value(arg, takes_value, rest)
        else:
            words.append(arg)
    return options, words


def _is_option(arg: str, takes_value: dict[str, bool]) -> bool:
    if arg.startswith("--"):
        name = arg.partition("=")[0]
        known = [each for each in (*takes_value, *OWN_OPTIONS) if each.startswith("--")]
        if name not in takes_value and (meant := misspelt(name, known)):
            raise UsageError(
                f"there is no option {name}",
                fix=f"did you mean {meant}? To search for it: {search_for([arg])}",
            )
        return name in takes_value
    if len(arg) < 2 or not arg.startswith("-"):
        return False
    for at, letter in enumerate(arg[1:], 2):
        if f"-{letter}" not in takes_value:
            return False
        if takes_value[f"-{letter}"]:  # the rest is its value, which is a number here
            return not any(map(str.isalpha, arg[at:]))
    return True


def _value(arg: str, takes_value: dict[str, bool], rest: Iterator[str]) -> list[str]:
    """The value of an option if it is the next argument."""
    last = arg if arg.startswith("--") else f"-{arg[-1]}"
    if not takes_value.get(last):
        return []
    value = next(rest, None)
    return [] if value is None else [value]
