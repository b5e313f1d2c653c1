"""A name becomes a model: which names mean what, and what is never guessed."""

import json

import pytest
from model_kit import hub, sha256

from ragvault.config.load import load_settings
from ragvault.config.settings import Models
from ragvault.errors import ConfigError, ModelUnavailable, ModelUnknown, ModelUnusable, UsageError
from ragvault.models import load
from ragvault.models.load import (
    LoadOptions,
    load_options,
    open_embedder,
    open_reranker,
    short_name,
)
from ragvault.ports import Progress


@pytest.fixture
def how(tmp_path):
    return LoadOptions(tmp_path / "models", offline=True)


def test_the_fake_is_opened_by_its_name_only(how):
    assert open_embedder("fake", how).name == open_embedder("fake@1", how).name
    assert open_reranker("fake", how).name
    for name in vars(type(Models())).get("__struct_fields__", ()):
        assert "fake" not in str(getattr(Models(), name))


def test_an_unknown_name_is_refused_with_the_nearest_one(how):
    with pytest.raises(ModelUnknown) as caught:
        open_embedder("potion-base-8m", how)
    assert "potion-base-8M" in caught.value.fix


def test_weights_that_are_not_here_are_told_and_not_replaced(how):
    with pytest.raises(ModelUnavailable):
        open_embedder("bge-small-en-v1.5", how)
    with pytest.raises(ModelUnavailable):
        open_reranker("ms-marco-MiniLM-L-12-v2", how)


def test_a_reranker_is_no_embedder(how):
    with pytest.raises(UsageError, match="reranker"):
        open_embedder("ms-marco-MiniLM-L-12-v2", how)
    with pytest.raises(UsageError, match="embedder"):
        open_reranker("potion-base-8M", how)


@pytest.mark.parametrize(
    "name", ["/srv/model", "~/model", "./model", "../model", "~joe/m", "C:\\m"]
)
def test_a_path_is_a_folder(name):
    assert load.is_unlisted(name)


@pytest.mark.parametrize("name", ["owner/name", "owner/name@0123456789ab"])
def test_owner_and_name_are_an_id_of_the_hub(name):
    assert load.is_unlisted(name)


@pytest.mark.parametrize("name", ["bge-small-en-v1.5", "bge@0123456789ab", "a/b/c", "a b/c", ""])
def test_everything_else_is_a_name_of_the_registry(name):
    assert not load.is_unlisted(name)


def test_a_folder_called_like_an_id_is_not_loaded_in_its_place(how, tmp_path, monkeypatch):
    """A vault may hold a folder of any name; standing in it must change nothing."""
    make_folder(tmp_path / "owner" / "name")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelUnavailable):
        open_embedder("owner/name", how)


def test_a_print_is_taken_off_a_full_name():
    assert short_name("owner/name@0123456789ab") == "owner/name"
    assert short_name("/home/me@work/model") == "/home/me@work/model"


def test_the_name_of_a_folder_follows_its_bytes(how, tmp_path):
    folder = make_folder(tmp_path / "mine")
    before = open_embedder(str(folder), how).name
    (folder / "notes.md").write_text("no part of the model")
    assert open_embedder(str(folder), how).name == before
    (folder / "model.safetensors").write_bytes(b"other")
    assert open_embedder(str(folder), how).name != before
    with pytest.raises(ModelUnusable, match="was changed"):
        open_embedder(before, how)


def test_a_folder_of_pickles_is_refused(how, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(ModelUnusable, match=r"no \.safetensors"):
        open_embedder(str(folder), how)


def test_a_pickle_in_one_part_of_a_model_is_refused(how, tmp_path):
    folder = make_folder(tmp_path / "mine")
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense" / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(ModelUnusable, match="pickle"):
        open_reranker(str(folder), how)


def test_a_folder_that_is_not_there_is_told(how, tmp_path):
    with pytest.raises(ModelUnusable, match="no such folder"):
        open_embedder(str(tmp_path / "nowhere"), how)


def test_an_id_is_fetched_once_and_without_what_could_run(how, tmp_path, monkeypatch):
    files = {"model.safetensors": b"weights", "config.json": b"{}", "run.py": b"bad"}
    files |= {"pytorch_model.bin": b"pickle", "onnx/model.safetensors": b"of another engine"}
    with hub(repository(files)) as (address, asked):
        monkeypatch.setenv("HF_ENDPOINT", address)
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        online = LoadOptions(how.models_dir)
        first = open_embedder("owner/name", online).name
        again = open_embedder("owner/name", online).name
    folder = how.models_dir / "hub" / "owner--name"
    assert first == again
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]
    assert len(asked) == 3  # the listing and two files, once
    assert open_embedder("owner/name", how).name == first  # and offline from now on


def test_weights_that_are_not_what_the_hub_names_are_refused(how, monkeypatch):
    pages = repository({"model.safetensors": b"safe tensors"})
    pages["/owner/name/resolve/c0ffee/model.safetensors"] = b"something else"
    with hub(pages) as (address, _):
        monkeypatch.setenv("HF_ENDPOINT", address)
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        with pytest.raises(ModelUnavailable, match="does not have the hash that the hub states"):
            open_embedder("owner/name", LoadOptions(how.models_dir))
    assert not (how.models_dir / "hub").exists()


def test_the_settings_and_the_flag_both_forbid_downloads():
    assert load_options(Models(offline=True), Progress()).offline
    assert load_options(Models(), Progress(), offline=True).offline
    assert not load_options(Models(), Progress()).offline


def test_a_vault_may_not_choose_a_model(tmp_path):
    (tmp_path / ".ragvault.toml").write_text('[models]\nembedder = "/vault/model"\n')
    with pytest.raises(ConfigError, match=r"models\.embedder"):
        load_settings(tmp_path)


def make_folder(folder):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def repository(files):
    siblings = [
        {"rfilename": name, "size": len(content), "lfs": {"sha256": sha256(content)}}
        if name.endswith(".safetensors")
        else {"rfilename": name, "size": len(content)}
        for name, content in files.items()
    ]
    listing = json.dumps({"sha": "c0ffee", "siblings": siblings}).encode()
    pages = {f"/owner/name/resolve/c0ffee/{name}": content for name, content in files.items()}
    return {"/api/models/owner/name/revision/main?blobs=true": listing, **pages}
