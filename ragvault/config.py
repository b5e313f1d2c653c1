"""Every setting there is, its default and the range it may have.

One struct is one table of config.toml, and the table is named after the room or stage that reads
it. The reasons stand in config.toml.example, which a test keeps equal to these defaults. How the
files, the environment and the flags are laid over each other is told in configure.py.

To add a setting: give it a field here and a line with its reason in config.toml.example. A table
inside a table is a field whose type is another Table; config_table.py says what may be declared
beside the fields. The tables of the read path are in config_query.py, config_fuse.py and
config_rank.py, that of its output in config_output.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from ragvault import config_fuse, config_query
from ragvault import config_rank as rank
from ragvault.config_output import Output as Output
from ragvault.config_query import Query as Query
from ragvault.config_table import (
    Above0,
    AtLeast0,
    Count,
    From0To1,
    Positive,
    Rule,
    Share,
    user_only,
)
from ragvault.config_table import Table as Table

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

    extensions: list[str] = field(default_factory=lambda: [".md", ".markdown"])
    exclude: list[str] = field(default_factory=lambda: list(DEFAULT_EXCLUDES))
    gitignore: bool = True
    obsidian_ignore: bool = True
    max_bytes: Positive = 5_000_000


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

    parent_min: Positive = 1500
    parent_max: Positive = 2000
    child_min: Positive = 200
    child_target: Positive = 500
    child_max: Positive = 1500
    overlap: Count = 0


class Vector(Table, frozen=True):
    """How passages are looked up by meaning."""

    exact_max: Count = 250_000
    probe: Share = 0.25
    threads: Positive = 1


class Boosts(Table, frozen=True):
    """How much a word counts in each field."""

    vault: ClassVar[bool] = True

    title: AtLeast0 = 3.0
    headers: AtLeast0 = 2.5
    keywords: AtLeast0 = 2.5
    description: AtLeast0 = 2.0
    tags: AtLeast0 = 2.0
    aliases: AtLeast0 = 1.5
    author: AtLeast0 = 1.0
    body: AtLeast0 = 1.0


class Keyword(Table, frozen=True):
    """How passages are looked up by word."""

    vault: ClassVar[bool] = True

    engine: Literal["whoosh", "tantivy"] = "whoosh"
    stemming: str = "english"
    k1: AtLeast0 = 1.2
    b: From0To1 = 0.75
    exact: AtLeast0 = 0.2
    fuzzy: bool = True
    slips: Annotated[int, Meta(ge=0, le=2, description="0, 1 or 2")] = 2
    spellings: Positive = 3
    seconds: Above0 = 2.0
    boosts: Boosts = Boosts()


class Code(Table, frozen=True):
    """How blocks of code are looked up."""

    vault: ClassVar[bool] = True

    enabled: bool = True
    k1: AtLeast0 = 1.2
    b: From0To1 = 0.75


class Graph(Table, frozen=True):
    """What links between notes say."""

    vault: ClassVar[bool] = True

    depth: Positive = 1
    list_share: Share = 0.5
    list_links: Positive = 5
    resolution: Above0 = 1.0
    seed: Count = 0


class Access(Table, frozen=True):
    """What is kept of your reading. Never from a vault: it would watch whoever opens it."""

    record: bool = False


class Models(Table, frozen=True):
    """Which weights are used and how they are run. Never from a vault."""

    closed: ClassVar[str] = "it names what is fetched and run on this machine"

    embedder: str = "bge-small-en-v1.5"
    static: str = "potion-base-8M"
    reranker: str = "ms-marco-MiniLM-L-12-v2"
    threads: Count = 0
    batch: Positive = 32
    offline: bool = False
    folder: Folder = ""


class Watch(Table, frozen=True):
    """How a watcher keeps indexes true, and answers searches; times in seconds."""

    events: Literal["native", "polling"] = "native"
    debounce: Above0 = 0.3
    patience: Above0 = 5.0
    reconcile: Above0 = 300.0
    polling: Above0 = 2.0
    tier: Literal["keyword", "static", "full"] = "full"
    answer: bool = True
    threads: Positive = 3
    log_bytes: Positive = 1_000_000


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
    search: config_query.Search = config_query.Search()
    query: config_query.Query = config_query.Query()
    retrieve: config_query.Retrieve = config_query.Retrieve()
    fuse: config_fuse.Fuse = config_fuse.Fuse()
    boost: rank.Boost = rank.Boost()
    calibrate: rank.Calibrate = rank.Calibrate()
    dedup: rank.Dedup = rank.Dedup()
    diversify: rank.Diversify = rank.Diversify()
    rerank: rank.Rerank = rank.Rerank()
    parents: rank.Parents = rank.Parents()
    limit: rank.Limit = rank.Limit()
    budget: rank.Budget = rank.Budget()
    output: Output = Output()
    watch: Watch = Watch()
