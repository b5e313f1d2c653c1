"""Profiles: only settings, all of them valid, laid between the defaults and what people set."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import pytest
from seed_values import ROWS

from ragvault.config import profiles, schema
from ragvault.config.load import load_settings
from ragvault.config.settings import Config
from ragvault.errors import ConfigError

NAMES = {
    *("default", "ragtriever", "ragtriever-weighted", "recollection", "recollection-weighted"),
    *("ragdocs", "docs", "technical", "personal", "research", "policy", "historical", "current"),
    *("definitions", "lightrag", "speed", "balanced", "quality", "lightrag-mix"),
}
USE_CASES = {"docs", "technical", "personal", "research", "historical", "current", "definitions"}
READ_PATH = {
    *("query", "retrieve", "fuse", "boost", "calibrate", "dedup", "diversify", "rerank"),
    *("parents", "limit", "budget"),
}


def test_every_profile_is_there_and_ours_comes_first():
    assert set(profiles.names()) == NAMES
    assert profiles.names()[0] == "default"


@pytest.mark.parametrize("name", profiles.names())
def test_a_profile_is_settings_of_the_read_path_and_nothing_else(name):
    assert set(profiles.values(name)) <= READ_PATH
    assert profiles.config(name)
    assert profiles.summary(name)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("docs", {}),
        ("technical", {"vector": 0.8, "keyword": 1.5, "bias": 0.3}),
        ("personal", {"vector": 1.3, "keyword": 0.7, "bias": 0.8}),
        ("research", {"vector": 1.5, "keyword": 0.5, "bias": 0.0}),
    ],
)
def test_use_cases_of_ragdocs(name, changes):
    base, config = profiles.config("ragdocs"), profiles.config(name)
    wanted = {"vector": 1.0, "keyword": 1.0, "bias": 0.5} | changes

    assert config.fuse.weights.vector == wanted["vector"]
    assert config.fuse.weights.keyword == wanted["keyword"]
    assert config.boost.recency.bias == wanted["bias"]
    assert (config.rerank, config.calibrate, config.limit) == (
        base.rerank,
        base.calibrate,
        base.limit,
    )


@pytest.mark.parametrize(("name", "seed", "values"), ROWS, ids=lambda each: str(each)[:30])
def test_a_profile_has_the_values_that_its_seed_prints(name, seed, values):
    config = Config() if name == "plain" else profiles.config(name)
    found = {key: reduce(getattr, key.split("."), config) for key in values}

    assert found == values, seed


@pytest.mark.parametrize("name", sorted(NAMES - {"default"}))
def test_no_value_of_a_profile_goes_unasserted(name):
    values = profiles.values(name)
    stated = {each.key for path, each in schema.settings().items() if has(values, path)}
    # What a use case of ragdocs has in common with it is asserted there.
    base = {"ragdocs", "policy"} if name in USE_CASES else set()
    asserted = {key for profile, _, row in ROWS if profile in {name, *base} for key in row}

    assert stated <= asserted


def has(tree, path):
    return path[0] in tree and (len(path) == 1 or has(tree[path[0]], path[1:]))


def test_no_setting_of_the_plain_pipeline_goes_unasserted():
    asserted = {key for profile, _, row in ROWS if profile == "plain" for key in row}

    assert {
        each.key for path, each in schema.settings().items() if path[0] in READ_PATH
    } <= asserted


# Laying


def test_what_people_set_wins_over_the_profile_and_the_profile_over_the_default(tmp_path):
    home = tmp_path / "home"
    vault = tmp_path / "vault"
    home.mkdir()
    vault.mkdir()
    (home / "config.toml").write_text('[search]\nprofile = "ragdocs"\n[fuse]\nk = 30\n')
    environ = {"RAGVAULT_HOME": str(home)}
    loaded = load_settings(vault, environ=environ)

    assert loaded.config.fuse.k == 30
    assert loaded.config.calibrate.floor == 0.3
    assert loaded.config.walk == Config().walk
    assert loaded.origin["fuse.k"] == f"user file {home / 'config.toml'}"
    assert loaded.origin["calibrate.floor"] == "profile ragdocs"
    assert loaded.origin["walk.exclude"] == "default"


def test_a_vault_chooses_its_own_profile_and_a_flag_another(tmp_path):
    (tmp_path / ".ragvault.toml").write_text('[search]\nprofile = "policy"\n')

    def method(*flags):
        return load_settings(tmp_path, flags=flags, environ={}).config.fuse.method

    assert method() == "features"
    assert method("search.profile=lightrag-mix") == "union"


def test_a_vaults_own_file_switches_recency_off(tmp_path):
    """A journal gains by recency, a reference loses: the seed wants it set a vault."""
    (tmp_path / ".ragvault.toml").write_text("[boost.recency]\nenabled = false\n")
    flags = ["search.profile=ragtriever"]

    assert load_settings(flags=flags, environ={}).config.boost.recency.enabled
    assert not load_settings(tmp_path, flags=flags, environ={}).config.boost.recency.enabled


@pytest.mark.parametrize("name", ["ragdoc", "plain", "../profiles/policy", ""])
def test_a_profile_that_does_not_exist_is_an_error_with_the_names_there_are(name):
    with pytest.raises(ConfigError, match="there is no profile of that name") as caught:
        load_settings(flags=[f"search.profile={name}"], environ={})

    assert "the profiles are: default, balanced" in caught.value.fix
    if name == "ragdoc":
        assert caught.value.fix.startswith("did you mean ragdocs? ")


def test_the_ranking_page_tells_every_stage_and_every_profile():
    page = (Path(__file__).parents[2] / "docs" / "ranking.md").read_text("utf-8")

    for name in profiles.names():
        assert f"\n| `{name}` | " in page
    for stage in READ_PATH - {"query", "retrieve"}:
        assert f"\n## {stage}\n" in page
