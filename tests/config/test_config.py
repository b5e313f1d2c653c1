"""Settings laid over each other: who wins, who is told, and what a vault may not do."""

from __future__ import annotations

import os
from functools import reduce
from pathlib import Path
from time import process_time
from typing import ClassVar

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ragvault.cli.reports import settings_toml
from ragvault.config import schema
from ragvault.config.load import (
    VAULT_FILE,
    Loaded,
    Source,
    check_file,
    combine,
    from_environment,
    from_file,
    from_flags,
    load_settings,
    marks,
)
from ragvault.config.profiles import config
from ragvault.config.settings import Table
from ragvault.errors import ConfigError

OURS = config("default")
KINDS = ("user file", "vault file", "environment", "flag")  # the lowest first


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    return folder


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"RAGVAULT_HOME": str(tmp_path)}


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def problem_of(call, *args, **named) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        call(*args, **named)
    return caught.value


def complaint(text: str, tmp_path: Path, name: str = "config.toml") -> ConfigError:
    """The first problem of a file with this text."""
    return problem_of(check_file, write(tmp_path / name, text))


def outcome(*sources: Source) -> Loaded | ConfigError:
    try:
        return combine(sources)
    except ConfigError as error:
        return error


# Precedence


def test_with_nothing_set_every_value_is_that_of_the_default_profile(environ):
    loaded = load_settings(environ=environ)

    assert loaded.config == OURS
    assert set(loaded.origin.values()) == {"default", "profile default"}
    assert loaded.files == ()
    assert not loaded.chosen


def test_each_source_wins_over_the_ones_below_it(tmp_path, vault, environ):
    user = write(
        tmp_path / "config.toml", "[chunk]\nparent_max = 101\noverlap = 11\nchild_min = 111"
    )
    own = write(
        vault / ".ragvault.toml", "[chunk]\nparent_max = 2200\noverlap = 22\nchild_max = 700"
    )
    environ |= {"RAGVAULT_CHUNK__OVERLAP": "33", "RAGVAULT_CHUNK__PARENT_MAX": "2300"}

    loaded = load_settings(vault, flags=["chunk.overlap=44"], environ=environ)

    chunk = loaded.config.chunk
    assert (chunk.overlap, chunk.parent_max, chunk.child_max, chunk.child_min) == (
        44,
        2300,
        700,
        111,
    )
    assert loaded.origin["chunk.overlap"] == "flag"
    assert loaded.origin["chunk.parent_max"] == "environment RAGVAULT_CHUNK__PARENT_MAX"
    assert loaded.origin["chunk.child_max"] == f"vault file {own}"
    assert loaded.origin["chunk.child_min"] == f"user file {user}"
    assert loaded.origin["chunk.child_target"] == "default"
    assert loaded.files == (user, own)


def source(kind, number: int) -> Source:
    return Source(kind, f"{kind}'s", {"limit": {"n": number}})


@given(
    st.lists(st.sampled_from(KINDS), unique=True).map(lambda kinds: sorted(kinds, key=KINDS.index))
)
def test_the_value_in_effect_is_that_of_the_highest_source(kinds):
    loaded = combine(source(kind, number) for number, kind in enumerate(kinds, start=1))

    assert loaded.config.limit.n == (len(kinds) or OURS.limit.n)
    assert loaded.origin["limit.n"].startswith(kinds[-1] if kinds else "default")


def test_of_two_flags_for_one_key_the_later_wins(environ):
    loaded = load_settings(
        flags=["chunk.overlap=1", "chunk={overlap=2, child_min=103}"], environ=environ
    )

    assert (loaded.config.chunk.overlap, loaded.config.chunk.child_min) == (2, 103)


def test_a_config_file_can_be_named(tmp_path, environ):
    named = write(tmp_path / "other.toml", "chunk.overlap = 7")
    write(tmp_path / "config.toml", "chunk.overlap = 8")

    loaded = load_settings(environ=environ | {"RAGVAULT_CONFIG": str(named)})

    assert loaded.config.chunk.overlap == 7


def test_a_named_file_must_be_there_and_an_unnamed_one_need_not(tmp_path, environ):
    load_settings(environ=environ)

    problem = problem_of(
        load_settings, environ=environ | {"RAGVAULT_CONFIG": str(tmp_path / "gone.toml")}
    )
    assert "gone.toml cannot be read: No such file" in str(problem)


# Typed values


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("label-first", "label-first"), ('"label-first"', "label-first")],
)
def test_text_may_be_typed_with_or_without_quotes(typed, meant, environ):
    assert (
        load_settings(flags=[f"links.order={typed}"], environ=environ).config.links.order == meant
    )
    variables = environ | {"RAGVAULT_LINKS__ORDER": typed}
    assert load_settings(environ=variables).config.links.order == meant


def test_text_that_looks_like_toml_is_still_text_where_text_is_wanted(environ):
    loaded = load_settings(flags=["paths.data=/2024"], environ=environ)
    assert loaded.config.paths.data == "/2024"
    loaded = load_settings(environ=environ | {"RAGVAULT_WALK__EXTENSIONS": '[".md", ".txt"]'})
    assert loaded.config.walk.extensions == [".md", ".txt"]


def test_an_unknown_variable_names_the_nearest_one(environ):
    problem = problem_of(load_settings, environ=environ | {"RAGVAULT_CHUNK__OVRLAP": "3"})

    assert str(problem) == "RAGVAULT_CHUNK__OVRLAP: there is no setting chunk.ovrlap"
    assert problem.fix == "did you mean RAGVAULT_CHUNK__OVERLAP?"


def test_every_setting_has_its_own_variable():
    variables = [each.variable for each in schema.settings().values()]
    assert len(set(variables)) == len(variables)

    for path, setting in schema.settings().items():
        written = schema.literal(setting.default)
        loaded = combine(from_environment({setting.variable: written}))
        assert loaded.origin[".".join(path)] == f"environment {setting.variable}"
        assert reduce(getattr, path, loaded.config) == setting.default


@pytest.mark.parametrize("flag", ["chunk.overlap", "=3", ".overlap=3", "chunk..overlap=3", ""])
def test_a_flag_of_another_form_is_told_the_form(flag, environ):
    problem = problem_of(load_settings, flags=[flag], environ=environ)

    assert "table.key=value" in str(problem)


# What is wrong, and the cure


@pytest.mark.parametrize(
    ("text", "message", "fix"),
    [
        ("[chunk]\n\noverlapp = 1", "there is no setting chunk.overlapp", "chunk.overlap?"),
        ("overlap = 1", "there is no setting overlap", "did you mean chunk.overlap?"),
        ("\n[chunks]\noverlap = 1", "there is no table [chunks]", "did you mean [chunk]?"),
        ("[links]\nz = 1", "there is no setting links.z", "the keys of [links] are: order"),
        ("zzz = 1", "there is no setting zzz", "the tables are: paths, walk, parse, links"),
        ("chunk = 3", "chunk is a table, not 3", "for example: chunk.parent_min = 1500"),
        ("[[chunk]]\na = 1", "chunk is a table, not [{a = 1}]", "set one of its keys"),
        ("[chunk]\noverlap 3", "this is not TOML", "fix that line"),
        ("[chunk]\na = 1\n[chunk]", "this is not TOML", "fix that line"),
        ("[chunk", "this is not TOML", "fix that line"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_its_cure(text, message, fix, tmp_path):
    problem = complaint(text, tmp_path)

    assert message in str(problem)
    assert fix in problem.fix


@pytest.mark.parametrize(
    ("text", "message", "default"),
    [
        ('chunk.overlap = "9"', '"9" is not a whole number from 0 to 1,000', "chunk.overlap = 0"),
        ("chunk = {overlap = -1}", "-1 is not a whole number from 0 to", "chunk.overlap = 0"),
        ("chunk.overlap = 1.5", "1.5 is not a whole number from 0 to", "chunk.overlap = 0"),
        ("chunk.child_min = true", "true is not a whole number", "chunk.child_min = 200"),
        ("walk.max_bytes = 0", "0 is not a whole number from 1", "walk.max_bytes = 5000000"),
        ("walk.gitignore = 1", "1 is not true or false", "walk.gitignore = true"),
        ("walk.exclude = ['a', 3]", "not a list of texts in quotes (Expected", "walk.exclude = ["),
        ("links.order = 'up'", 'not one of "target-first", "label-first"', "links.order = "),
        ("paths.data = 'here'", '"here" is not a folder such as', 'paths.data = ""'),
        (
            "retrieve.lists = ['recent']",
            'a list of any of "recency", "access" (',
            "retrieve.lists = ",
        ),
        (
            "boost.recency.tiers = [[60, 1.1], [14, 1.2]]",
            "is not a list of [days, factor], the fewest days first: [[14, 1.2], [60, 1.1]]",
            "boost.recency.tiers = ",
        ),
        (
            "boost.recency.tiers = [[14, 1.2], [14, 1.1]]",
            "is not a list of [days, factor], the fewest days first",
            "boost.recency.tiers = ",
        ),
    ],
)
def test_a_value_that_does_not_fit_is_told_what_would(text, message, default, tmp_path):
    problem = complaint(text, tmp_path)

    assert message in str(problem)
    assert f"the default is: {default}" in problem.fix


@pytest.mark.parametrize("legs", ["[]", "['graph']", "['vectr']", "'vector'"])
def test_a_search_has_a_leg_that_finds_something_by_itself(legs, tmp_path):
    problem = complaint(f"retrieve.legs = {legs}", tmp_path)

    wanted = 'a list of "name", "vector", "keyword", "code", "graph", not "graph" alone'
    assert f" is not {wanted}" in str(problem)


@pytest.mark.parametrize("number", ["inf", "-inf", "nan", "1e308"])
def test_no_setting_is_a_number_that_a_score_cannot_bear(number):
    floats = [each.key for each in schema.settings().values() if "float" in str(each.type)]
    alone = {"boost.recency.tiers": f"[[{number}, 1.0]]"}
    assert len(floats) > 40

    for key in floats:
        with pytest.raises(ConfigError, match=f"{key} = .* is not "):
            combine(from_flags([f"{key}={alone.get(key, number)}"]))


def test_nor_a_count_beyond_all_counts():
    with pytest.raises(ConfigError, match="is not a whole number from 1 to 1,000"):
        combine(from_flags([f"boost.backlinks.cap={10**400}"]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("parent_min = 2001", "parent_min = 2001 is more than parent_max = 2000"),
        ("child_min = 501", "child_min = 501 is more than child_target = 500"),
        ("child_max = 499", "child_target = 500 is more than child_max = 499"),
        ("child_max = 2001", "child_max = 2001 is more than parent_max = 2000"),
        ("overlap = 500", "overlap = 500 is not less than child_target = 500"),
    ],
)
def test_a_contradictory_pair_is_refused(text, message, tmp_path):
    problem = complaint(f"[chunk]\n{text}", tmp_path)

    assert str(problem) == f"{tmp_path / 'config.toml'}: [chunk] {message}"
    assert problem.fix.startswith("lower chunk.")


def test_a_contradiction_between_two_sources_names_both(tmp_path, vault, environ):
    user = write(tmp_path / "config.toml", "chunk.child_target = 300")
    own = write(vault / ".ragvault.toml", "chunk.overlap = 400")

    problem = problem_of(load_settings, vault, environ=environ)

    assert str(problem).startswith(f"{own}, {user}: [chunk] overlap = 400 is not less than")


def test_a_value_that_cannot_be_used_is_not_also_called_contradictory(tmp_path):
    assert "is not a whole number" in str(complaint("chunk.parent_max = 'x'", tmp_path))


def test_a_setting_is_declared_with_an_example_of_every_mistake_it_can_have():
    """Every type that settings have can be said in words."""
    for setting in schema.settings().values():
        assert not schema.wanted(setting.type).startswith("of the type"), setting.key


def test_the_defaults_contradict_nothing():
    assert combine([]).config == OURS


# Files that cannot be read


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xef\xbb\xbfchunk.overlap = 1", "byte order mark"),
        ("chunk.overlap = 1".encode("utf-16"), "byte order mark"),
        (b"# fine\n# caf\xe9", "config.toml: this is not UTF-8 text"),
        (b"#" * 1_000_001, "at most 1,000,000"),
        (b"a = " + b"1" * 5000, "this is not TOML"),
    ],
)
def test_a_file_that_is_no_text_is_named_with_its_cure(content, message, tmp_path):
    path = tmp_path / "config.toml"
    path.write_bytes(content)

    problem = problem_of(check_file, path)

    assert message in str(problem)
    assert problem.fix


def test_a_folder_and_a_pipe_are_not_read(tmp_path):
    (tmp_path / "folder.toml").mkdir()
    os.mkfifo(tmp_path / "pipe.toml")

    for name in ("folder.toml", "pipe.toml"):
        problem = problem_of(check_file, tmp_path / name)
        assert str(problem).endswith("is not a file")


def test_a_broken_link_is_told_and_not_passed_over(vault, environ):
    (vault / ".ragvault.toml").symlink_to("nowhere")

    problem = problem_of(load_settings, vault, environ=environ)
    assert ".ragvault.toml cannot be read" in str(problem)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_the_right_to_read_it_is_told(tmp_path):
    write(tmp_path / "config.toml", "").chmod(0)

    problem = problem_of(check_file, tmp_path / "config.toml")
    assert "Permission denied" in str(problem)


# What a vault may not set


def test_a_vault_may_say_how_it_is_read_and_cut(vault, environ):
    write(
        vault / ".ragvault.toml",
        "walk.gitignore = false\nparse.comments = true\nchunk.overlap = 9",
    )

    loaded = load_settings(vault, environ=environ)

    assert not loaded.config.walk.gitignore
    assert loaded.config.chunk.overlap == 9


@pytest.mark.parametrize(
    "text",
    [
        "parse.git_dates = true",
        'paths.data = "/srv/other"',
        'models.embedder = "someone/else"',
        'models.folder = "/srv/other"',
        "models.offline = false",
    ],
)
def test_a_vault_may_not_run_commands_or_choose_folders_or_models(text, vault, environ, tmp_path):
    write(vault / ".ragvault.toml", f"# mine\n{text}")

    problem = problem_of(load_settings, vault, environ=environ)

    assert str(problem).startswith(f"{vault / '.ragvault.toml'}: a vault may not set")
    assert "because it" in str(problem)
    assert str(tmp_path / "config.toml") in problem.fix


def test_a_vault_file_is_held_to_its_limits_when_checked_alone(tmp_path):
    problem = complaint("parse.git_dates = true", tmp_path, name=".ragvault.toml")

    assert "a vault may not set parse.git_dates" in str(problem)


class Inner(Table, frozen=True):
    url: str = ""


class Outer(Table, frozen=True):
    vault: ClassVar[bool] = True

    inner: Inner = Inner()
    size: int = 1


class Root(Table, frozen=True):
    outer: Outer = Outer()


def test_a_new_table_is_closed_to_vaults_until_it_says_otherwise():
    refusals = {each.key: each.refusal for each in schema.settings(Root).values()}

    assert refusals["outer.size"] == ""
    assert refusals["outer.inner.url"]


def test_only_these_tables_are_open_to_a_vault():
    """A new name here is a decision: it must be no path, command, address, model or record."""
    closed = {each.key for each in schema.settings().values() if each.refusal}
    open_tables = {each.path[0] for each in schema.settings().values() if not each.refusal}

    assert closed >= {"paths.data", "parse.git_dates"}
    ranking = {"search", "query", "retrieve", "fuse", "boost", "calibrate", "dedup", "diversify"}
    ranking |= {"rerank", "parents", "limit", "budget"}
    reading = {"walk", "parse", "links", "chunk", "keyword", "code", "graph"}
    assert open_tables <= reading | ranking


# Laws

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.dates()
    | st.binary(max_size=3)
)
real_names = st.sampled_from(sorted({part for path in schema.settings() for part in path}))
names = real_names | st.text(max_size=5)
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=15,
)
tables = st.dictionaries(names, st.dictionaries(names, trees, max_size=4) | trees, max_size=5)


@given(tables, st.sampled_from(KINDS))
def test_no_table_raises_anything_but_a_config_error(tree, kind):
    result = outcome(Source(kind, "here", tree))

    assert isinstance(result, Loaded) or (str(result) and result.fix)


@given(st.text(), st.sampled_from(sorted(schema.settings())))
def test_no_typed_value_raises_anything_but_a_config_error(text, path):
    setting = schema.settings()[path]

    by_flag = outcome(*from_flags([f"{setting.key}={text}"]))
    by_variable = outcome(*from_environment({setting.variable: text.strip()}))

    assert type(by_flag) is type(by_variable)
    if isinstance(by_flag, Loaded):
        assert by_flag.config == by_variable.config


def fitting(setting: schema.Setting) -> st.SearchStrategy[object]:
    """Values that a setting probably accepts, whatever its type."""
    texts = st.text(st.characters(codec="utf-8"), max_size=8)
    if isinstance(setting.default, bool):
        return st.booleans()
    if isinstance(setting.default, int):
        return st.integers(1, 2**40)
    if isinstance(setting.default, float):
        return st.floats(0.001, 1)
    if isinstance(setting.default, list):
        return st.lists(texts, max_size=4)
    choices = getattr(setting.type, "__args__", ())
    return st.sampled_from(choices) if len(choices) > 1 else texts.map("/".__add__)


def nested(path, value):
    return reduce(lambda inner, name: {name: inner}, reversed(path), value)


# Few at a time: of many sizes, two nearly always contradict each other.
some_settings = st.lists(st.sampled_from(sorted(schema.settings())), max_size=3).flatmap(
    lambda paths: st.fixed_dictionaries({path: fitting(schema.settings()[path]) for path in paths})
)


@given(some_settings)
def test_what_show_prints_loads_to_the_same_settings(tmp_path_factory, chosen):
    first = outcome(*(Source("flag", "--set", nested(path, chosen[path])) for path in chosen))
    assume(isinstance(first, Loaded))
    shown = settings_toml(first, {"user_file": "somewhere"})
    path = write(tmp_path_factory.getbasetemp() / "shown.toml", shown)

    again = combine([from_file(path, "user file")])

    assert again.config == first.config
    assert all(str(path) in origin for origin in again.origin.values())


def test_a_vault_cannot_set_a_number_that_makes_a_search_hang(tmp_path):
    for setting in schema.settings().values():
        if not setting.refusal and isinstance(setting.default, int | float):
            path = tmp_path / VAULT_FILE
            path.write_text(f"{setting.key} = {10**10}\n")
            with pytest.raises(ConfigError):
                check_file(path)


def test_a_vault_cannot_ask_for_a_walk_through_the_whole_graph(tmp_path):
    path = tmp_path / VAULT_FILE
    path.write_text("graph.depth = 1000000\n")

    with pytest.raises(ConfigError, match="a whole number from 1 to 10"):
        check_file(path)


def test_a_file_of_a_vault_is_small(tmp_path):
    path = tmp_path / VAULT_FILE
    path.write_text("# " + "a" * 64_000)

    with pytest.raises(ConfigError, match="at most 64,000"):
        check_file(path)


def test_a_key_of_very_many_parts_is_refused_at_once(tmp_path):
    path = tmp_path / VAULT_FILE
    path.write_text("\n" + ".".join("a" * 30_000) + " = 1\n")

    start = process_time()
    with pytest.raises(ConfigError, match="more than 20 parts"):
        check_file(path)
    assert process_time() - start < 1


def test_a_folder_that_may_not_be_read_has_no_marks(tmp_path, monkeypatch):
    def forbidden(path, **_):
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", forbidden)
        assert marks(tmp_path) == []


def test_a_dendron_workspace_says_how_its_links_are_written_and_a_person_says_it_louder(tmp_path):
    vault = tmp_path / "vault"
    vault.mkdir()
    environ = {"RAGVAULT_HOME": str(tmp_path / "home")}
    assert load_settings(vault, environ=environ).config.links.order == "target-first"
    (tmp_path / "dendron.yml").write_text("version: 5\n")
    for folder in (vault, tmp_path):
        found = load_settings(folder, environ=environ)
        assert found.config.links.order == "label-first"
        assert found.origin["links.order"] == f"vault file {tmp_path / 'dendron.yml'}"
    (vault / ".ragvault.toml").write_text('links.order = "target-first"\n')
    assert load_settings(vault, environ=environ).config.links.order == "target-first"
