"""Every setting there is, its default and the range it may have.

One struct is one table of config.toml, named after the room or stage that reads it. The defaults of
those that rank are the plain pipeline with every option off: profiles/default.toml says what ours
adds. load.py explains how files, environment and flags combine; docs/ranking.md has the formulas.

To add a setting, give it a field here, and explain it in config.toml.example if people would change
it, else in the tables of further settings in docs/configuration.md or docs/ranking.md. A test
compares all of them with the default profile.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from ragvault.config.schema import (
    Above0,
    AtLeast0,
    Characters,
    Count,
    DateOf,
    Duration,
    Factor,
    From0To1,
    LegSeconds,
    Open,
    Positive,
    Rule,
    Seconds,
    Share,
    Size,
    Table,
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
    from ragvault.text.spelling import stemmer

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
    fuzzy: bool = True
    seconds: LegSeconds = 2.0
    boosts: Boosts = field(default_factory=Boosts)


class Code(Table, frozen=True):
    """How blocks of code are looked up."""

    vault: ClassVar[bool] = True

    enabled: bool = True


class Graph(Table, frozen=True):
    """What links between notes say."""

    vault: ClassVar[bool] = True

    depth: Annotated[int, whole(1, 10)] = 1


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
    offline: bool = False
    folder: Folder = ""


class Watch(Table, frozen=True):
    """How a watcher keeps indexes true; times in seconds."""

    events: Literal["native", "polling"] = "native"
    debounce: Seconds = 0.3


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


class Expand(Open, frozen=True):
    """Words of the vault's own vocabulary that are added to a query."""

    method: Literal["off", "similarity", "percentile"] = "off"
    terms: Positive = 3
    similarity: From0To1 = 0.5


class Query(Open, frozen=True):
    """How a query is understood."""

    adaptive_weights: bool = False
    camel_case: Literal["identifier", "loose"] = "loose"
    phrases: Literal["must", "prefer"] = "prefer"
    expand: Expand = field(default_factory=Expand)


class Retrieve(Open, frozen=True):
    """How many candidates each leg finds, and what happens to those a leg missed."""

    legs: Legs = field(default_factory=lambda: ["vector", "keyword"])
    lists: list[Literal["recency", "access"]] = field(default_factory=list)
    vector: Positive = 50
    keyword: Positive = 50
    widen: bool = False
    window: Count = 0
    outside: Literal["keep", "drop"] = "keep"
    fill: list[Literal["vector", "keyword"]] = field(default_factory=list)
    seconds: LegSeconds = 2.0


def _rising(tiers: Sequence[Sequence[float]]) -> bool:
    """The first tier that holds an age counts: one behind a longer one would never be asked."""
    return all(shorter[0] < longer[0] for shorter, longer in pairwise(tiers))


Tiers = Annotated[
    list[tuple[Above0, Factor]],
    checked("a list of [days, factor], the fewest days first: [[14, 1.2], [60, 1.1]]", _rising),
]


# --- fuse ---


class Weights(Open, frozen=True):
    """How much each list counts in `rrf` and `weighted`."""

    name: AtLeast0 = 1.0
    vector: AtLeast0 = 1.0
    keyword: AtLeast0 = 1.0
    code: AtLeast0 = 1.0
    graph: AtLeast0 = 1.0
    recency: AtLeast0 = 1.0
    access: AtLeast0 = 1.0


class Weighted(Open, frozen=True):
    """Raw scores, weighted: how it was done before rank fusion."""

    normalise: Literal["off", "minmax"] = "off"
    floor: From0To1 = 0.0
    relevance: AtLeast0 = 1.0
    recency: AtLeast0 = 0.0
    access: AtLeast0 = 0.0


class Features(Open, frozen=True):
    """How much each of the four features counts that `features` adds up, each from 0 to 1."""

    similarity: AtLeast0 = 0.5
    recency: AtLeast0 = 0.2
    hierarchy: AtLeast0 = 0.2
    adjacency: AtLeast0 = 0.1


class Fuse(Open, frozen=True):
    """Several lists become one score."""

    method: Literal["rrf", "weighted", "features", "union"] = "rrf"
    exact: AtLeast0 = 0.0
    keep: Count = 0
    k: Positive = 60
    exponent: AtLeast0 = 0.0
    mode: Literal["off", "speed", "balanced", "quality", "auto"] = "off"
    score_aware: bool = False
    weights: Weights = field(default_factory=Weights)
    weighted: Weighted = field(default_factory=Weighted)
    features: Features = field(default_factory=Features)


# --- boost ---


class Backlinks(Open, frozen=True):
    """Notes that others link to."""

    enabled: bool = False
    count: Literal["notes", "links"] = "links"
    scale: Literal["linear", "log"] = "linear"
    weight: AtLeast0 = 0.1
    cap: Positive = 10


class Recency(Open, frozen=True):
    """Notes of late."""

    enabled: bool = False
    date: DateOf = "modified"
    tiers: Tiers = field(default_factory=lambda: [(14.0, 1.2), (60.0, 1.1), (180.0, 1.0)])
    older: Factor = 0.95
    inclusive: bool = False
    bias: From0To1 = 0.5


class Community(Open, frozen=True):
    """Notes of the same community as the best ones."""

    enabled: bool = False
    factor: Factor = 1.1
    top: Positive = 1


class Importance(Open, frozen=True):
    """Notes that say of themselves that they are important."""

    enabled: bool = False
    levels: list[str] = field(default_factory=lambda: ["high"])


class AccessBoost(Open, frozen=True):
    """Notes that are opened often."""

    enabled: bool = False
    weight: AtLeast0 = 0.1


class Templates(Open, frozen=True):
    """Notes that are forms to fill in, and answer nothing."""

    enabled: bool = False
    folders: list[str] = field(default_factory=lambda: ["template", "templates", "_templates"])
    factor: Factor = 0.5


class Superseded(Open, frozen=True):
    """Notes that another one replaces."""

    enabled: bool = False


class Boost(Open, frozen=True):
    """What is known of a note, whatever the query."""

    enabled: bool = True
    bounded: bool = False
    max_rise: From0To1 = 0.0
    backlinks: Backlinks = field(default_factory=Backlinks)
    recency: Recency = field(default_factory=Recency)
    community: Community = field(default_factory=Community)
    importance: Importance = field(default_factory=Importance)
    access: AccessBoost = field(default_factory=AccessBoost)
    templates: Templates = field(default_factory=Templates)
    superseded: Superseded = field(default_factory=Superseded)


# --- calibrate ---


class Bands(Open, frozen=True):
    """Above which confidence a match has which name; below all of them it is unlikely."""

    rules = (("weak", "<", "moderate"), ("moderate", "<", "good"), ("good", "<", "excellent"))

    excellent: From0To1 = 0.9
    good: From0To1 = 0.7
    moderate: From0To1 = 0.5
    weak: From0To1 = 0.3

    def name(self, confidence: float) -> str:
        """The highest band whose bound this confidence exceeds."""
        for name in ("excellent", "good", "moderate", "weak"):
            if confidence > getattr(self, name):
                return name
        return "unlikely"


class Calibrate(Open, frozen=True):
    """How likely a result answers, on a scale that can be compared between answers."""

    enabled: bool = True
    source: Literal["evidence", "score"] = "evidence"
    floor: From0To1 = 0.0
    likely: From0To1 = 0.045
    reranker: From0To1 = 1.0
    bands: Bands = field(default_factory=Bands)


# --- dedup, diversify, rerank, parents, limit, budget ---


class Dedup(Open, frozen=True):
    """The same thing said twice."""

    enabled: bool = False
    jaccard: Share = 0.7
    similarity: Share = 0.95
    keep: Literal["best", "newest"] = "best"
    reach: Count = 0


class Diversify(Open, frozen=True):
    """Not ten times the same corner of the vault."""

    enabled: bool = False
    per_note: Count = 0
    relax: bool = False
    mmr_lambda: From0To1 = 0.7
    relevance: Literal["vector", "score"] = "vector"
    order: Literal["score", "mmr"] = "mmr"


class Rerank(Open, frozen=True):
    """The best ones read again by a model that sees query and passage together."""

    enabled: bool = False
    n: Annotated[int, whole(1, 100)] = 10
    close: From0To1 = 0.0
    titles: bool = False
    method: Literal["score", "replace"] = "replace"
    weight: From0To1 = 1.0
    rest: Literal["keep", "drop"] = "drop"


class Parents(Open, frozen=True):
    """A passage becomes its section."""

    enabled: bool = False
    unit: Literal["section", "passage"] = "passage"
    neighbours: Annotated[int, whole(0, 20)] = 0
    per_note: Count = 0


class Limit(Open, frozen=True):
    """How many results, where the caller does not say."""

    n: Positive = 10
    min_confidence: From0To1 = 0.0


class Budget(Open, frozen=True):
    """What fits into the reader's context."""

    enabled: bool = False
    tokens: Size = 4000


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

    paths: Paths = field(default_factory=Paths)
    walk: Walk = field(default_factory=Walk)
    parse: Parse = field(default_factory=Parse)
    links: Links = field(default_factory=Links)
    chunk: Chunk = field(default_factory=Chunk)
    vector: Vector = field(default_factory=Vector)
    keyword: Keyword = field(default_factory=Keyword)
    code: Code = field(default_factory=Code)
    graph: Graph = field(default_factory=Graph)
    access: Access = field(default_factory=Access)
    models: Models = field(default_factory=Models)
    search: Search = field(default_factory=Search)
    query: Query = field(default_factory=Query)
    retrieve: Retrieve = field(default_factory=Retrieve)
    fuse: Fuse = field(default_factory=Fuse)
    boost: Boost = field(default_factory=Boost)
    calibrate: Calibrate = field(default_factory=Calibrate)
    dedup: Dedup = field(default_factory=Dedup)
    diversify: Diversify = field(default_factory=Diversify)
    rerank: Rerank = field(default_factory=Rerank)
    parents: Parents = field(default_factory=Parents)
    limit: Limit = field(default_factory=Limit)
    budget: Budget = field(default_factory=Budget)
    output: Output = field(default_factory=Output)
    watch: Watch = field(default_factory=Watch)
    service: Service = field(default_factory=Service)
