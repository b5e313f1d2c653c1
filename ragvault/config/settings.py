"""Every setting there is, its default and the range it may have.

One struct is one table of config.toml, named after the room or stage that reads it. The tables of
the ranking stages are in ranking.py; load.py explains how files, environment and flags combine.

To add a setting, give it a field here, and explain it in config.toml.example if people would change
it, else in the tables of further settings in docs/configuration.md or docs/ranking.md. A test
compares all of them with these defaults.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from ragvault.config import ranking
from ragvault.config.schema import (
    Above0,
    AtLeast0,
    Characters,
    Count,
    Duration,
    From0To1,
    LegSeconds,
    Open,
    Positive,
    Rule,
    Seconds,
    Share,
    Size,
    Table,
    Threads,
    checked,
    user_only,
    whole,
)
from ragvault.errors import ConfigError

# Not relative: where the indexes are must not depend on where a command was typed.
Folder = Annotated[
    str,
    Meta(
        pattern=r"^$|^~?/|^[A-Za-z]:[\\/]",
        description='a folder such as "/srv/ragvault" or "~/ragvault", or "" for the usual one',
    ),
]

DEFAULT_EXCLUDES = [
    ".*",
    "node_modules/",
    "__pycache__/",
    "*.sync-conflict-*",
    "*conflicted copy*",
]


class Paths(Table, frozen=True):
    """Where ragvault writes. RAGVAULT_HOME wins over all of it."""

    data: Annotated[Folder, user_only("it names a folder that ragvault writes to")] = ""


class Walk(Table, frozen=True):
    """Which files of a vault are notes."""

    vault: ClassVar[bool] = True

    extensions: list[str] = field(default_factory=lambda: [".md", ".markdown", ".canvas", ".txt"])
    exclude: list[str] = field(default_factory=lambda: list(DEFAULT_EXCLUDES))
    gitignore: bool = True
    obsidian_ignore: bool = True
    max_bytes: Annotated[Size, user_only("large files take long to read")] = 5_000_000


class Parse(Table, frozen=True):
    """What of a note's text is read."""

    vault: ClassVar[bool] = True

    comments: bool = False
    git_dates: Annotated[bool, user_only("it runs git inside the vault")] = True


class Links(Table, frozen=True):
    """How links are read and looked up."""

    vault: ClassVar[bool] = True

    order: Literal["target-first", "label-first"] = "target-first"


class Chunk(Table, frozen=True):
    """How a note is cut into sections (parents) and passages (children); sizes in characters."""

    vault: ClassVar[bool] = True
    rules: ClassVar[tuple[Rule, ...]] = (
        ("parent_min", "<=", "parent_max"),
        ("child_min", "<=", "child_target"),
        ("child_target", "<=", "child_max"),
        ("child_max", "<=", "parent_max"),
        ("overlap", "<", "child_target"),
    )

    parent_min: Characters = 1500
    parent_max: Characters = 2000
    child_min: Characters = 200
    child_target: Characters = 500
    child_max: Characters = 1500
    overlap: Count = 0


class Vector(Table, frozen=True):
    """How passages are looked up by meaning."""

    exact_max: Size = 500_000
    probe: Share = 0.25
    threads: Threads = 1


class Boosts(Table, frozen=True):
    """How much a word counts in each field."""

    vault: ClassVar[bool] = True

    title: AtLeast0 = 3.0
    headers: AtLeast0 = 2.5
    keywords: AtLeast0 = 2.5
    description: AtLeast0 = 2.0
    tags: AtLeast0 = 2.0
    aliases: AtLeast0 = 1.5
    properties: AtLeast0 = 1.0
    author: AtLeast0 = 1.0
    body: AtLeast0 = 1.0


def _can_be_stemmed(language: str) -> bool:
    from ragvault.text.fold import stemmer

    try:
        return language in ("none", "english") or stemmer(language) is not None
    except ConfigError:
        return False


class Keyword(Table, frozen=True):
    """How passages are looked up by word."""

    vault: ClassVar[bool] = True

    engine: Literal["auto", "whoosh", "tantivy"] = "auto"
    stemming: Annotated[
        str,
        checked(
            '"none" or a language that Snowball can stem, such as "english" or "german"',
            _can_be_stemmed,
        ),
    ] = "english"
    k1: AtLeast0 = 1.2
    b: From0To1 = 0.75
    exact: AtLeast0 = 0.2
    fuzzy: bool = True
    slips: Annotated[int, whole(0, 2)] = 2
    spellings: Positive = 3
    seconds: LegSeconds = 2.0
    boosts: Boosts = Boosts()


class Code(Table, frozen=True):
    """How blocks of code are looked up."""

    vault: ClassVar[bool] = True

    enabled: bool = True


class Graph(Table, frozen=True):
    """What links between notes say."""

    vault: ClassVar[bool] = True

    depth: Annotated[int, whole(1, 10)] = 1
    list_share: Share = 0.5
    list_links: Positive = 5
    resolution: Above0 = 1.0
    seed: Count = 0


class Access(Table, frozen=True):
    """Whether opened notes are recorded. A vault may not set this: it could spy on its readers."""

    record: bool = False


class Models(Table, frozen=True):
    """Which weights are used and how they are run. Never from a vault."""

    closed: ClassVar[str] = "it names what is fetched and run on this machine"

    embedder: str = "bge-small-en-v1.5"
    static: str = "potion-base-8M"
    reranker: str = "ms-marco-MiniLM-L-12-v2"
    threads: Annotated[int, whole(0, 64)] = 0
    batch: Annotated[int, whole(1, 256)] = 32
    offline: bool = False
    folder: Folder = ""


class Watch(Table, frozen=True):
    """How a watcher keeps indexes true; times in seconds."""

    events: Literal["native", "polling"] = "native"
    debounce: Seconds = 0.3
    polling: Seconds = 2.0


class Service(Table, frozen=True):
    """The resident process that a search starts, so that the next ones are fast."""

    resident: Duration = "10m"


# --- The read path before ranking ---

Leg = Literal["name", "vector", "keyword", "code", "graph"]


def _finding(legs: Sequence[str]) -> bool:
    """The graph leg looks at the neighbours of what others found, and finds nothing alone."""
    return bool(set(legs) - {"graph"})


Legs = Annotated[
    list[Leg],
    checked('a list of "name", "vector", "keyword", "code", "graph", not "graph" alone', _finding),
]


class Search(Open, frozen=True):
    """Which profile the other settings override, and how long a search may update the index."""

    profile: str = "default"
    update: Annotated[Duration, user_only("it decides when a search writes")] = "0.5s"


class TypeWeights(Open, frozen=True):
    """What a query of one type multiplies the weight of one leg by."""

    factual_keyword: AtLeast0 = 1.5
    navigational_graph: AtLeast0 = 1.5
    exploratory_vector: AtLeast0 = 1.3


class Expand(Open, frozen=True):
    """Words of the vault's own vocabulary that are added to a query."""

    method: Literal["off", "similarity", "percentile"] = "off"
    terms: Positive = 3
    similarity: From0To1 = 0.5
    percentile: From0To1 = 0.999
    weight: From0To1 = 0.5
    embed: bool = False


class Query(Open, frozen=True):
    """How a query is understood."""

    adaptive_weights: bool = False
    hypothesis: bool = True
    camel_case: Literal["identifier", "loose"] = "identifier"
    phrases: Literal["must", "prefer"] = "must"
    weights: TypeWeights = TypeWeights()
    expand: Expand = Expand()


class Retrieve(Open, frozen=True):
    """How many candidates each leg finds, and what happens to those a leg missed."""

    legs: Legs = field(default_factory=lambda: ["name", "vector", "keyword", "code", "graph"])
    lists: list[Literal["recency", "access"]] = field(default_factory=list)
    name: Positive = 20
    vector: Positive = 70
    keyword: Positive = 70
    code: Positive = 50
    graph: Positive = 50
    widen: bool = True
    seeds: Positive = 10
    window: Count = 0
    outside: Literal["keep", "drop"] = "keep"
    fill: Literal["off", "score", "rank"] = "rank"
    fill_legs: list[Literal["vector", "keyword"]] = field(
        default_factory=lambda: ["vector", "keyword"]
    )
    seconds: LegSeconds = 2.0


# --- What results look like ---

Template = Annotated[
    str,
    Meta(
        pattern=r"^$|^[A-Za-z][A-Za-z0-9+.-]*:[^\s]*$",
        description='a link such as "vscode://file{path}:{line}", or "" for the usual one',
    ),
]


class Output(Table, frozen=True):
    """How results look. Never from a vault: a link names a program that is started."""

    editor: Template = ""
    links: bool = True


class Config(Table, frozen=True):
    """All settings, valid."""

    paths: Paths = Paths()
    walk: Walk = Walk()
    parse: Parse = Parse()
    links: Links = Links()
    chunk: Chunk = Chunk()
    vector: Vector = Vector()
    keyword: Keyword = Keyword()
    code: Code = Code()
    graph: Graph = Graph()
    access: Access = Access()
    models: Models = Models()
    search: Search = Search()
    query: Query = Query()
    retrieve: Retrieve = Retrieve()
    fuse: ranking.Fuse = ranking.Fuse()
    boost: ranking.Boost = ranking.Boost()
    calibrate: ranking.Calibrate = ranking.Calibrate()
    dedup: ranking.Dedup = ranking.Dedup()
    diversify: ranking.Diversify = ranking.Diversify()
    rerank: ranking.Rerank = ranking.Rerank()
    parents: ranking.Parents = ranking.Parents()
    limit: ranking.Limit = ranking.Limit()
    budget: ranking.Budget = ranking.Budget()
    output: Output = Output()
    watch: Watch = Watch()
    service: Service = Service()
