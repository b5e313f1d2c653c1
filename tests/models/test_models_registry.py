"""The registry: what is in it is safe, and a name stands for one way to make a vector."""

import msgspec
import pytest
from model_kit import FILES, make_model, make_wheel, real, wheel_source

from ragvault.config.settings import Models
from ragvault.errors import ModelUnknown
from ragvault.models import registry

ENTRY = """
[[model]]
name = "{name}"
role = "embedder"
engine = "onnx"
max_tokens = 8
licence = "MIT"
origin = "nobody"
about = "for tests"
[[model.source]]
kind = "hub"
bytes = 1
[model.source.files]
"{file}" = {{ at = "x", sha256 = "{sha}" }}
"""


def entry(name="tiny", file="model.onnx", sha="0" * 64):
    return ENTRY.format(name=name, file=file, sha=sha)


@pytest.mark.parametrize("model", registry.known_models().values(), ids=lambda model: model.name)
def test_every_model_says_who_made_it_and_where_it_is(model):
    assert model.licence
    assert model.origin
    assert model.sources
    assert model.role == "reranker" or model.dim > 0
    assert all(source.sha256 for source in model.sources if source.kind == "wheel")
    assert all(len(source.revision) == 40 for source in model.sources if source.kind == "hub")


def test_the_default_settings_name_models_of_the_right_role():
    settings = Models()
    assert real(settings.embedder).role == real(settings.static).role == "embedder"
    assert real(settings.reranker).role == "reranker"


@pytest.mark.parametrize("file", ["model.bin", "weights.pkl", "../up.json", "/root.json", "run.py"])
def test_a_file_that_could_run_or_escape_is_refused(file):
    with pytest.raises(msgspec.ValidationError):
        registry.parse_registry(entry(file=file))


@pytest.mark.parametrize("name", ["../up", "a/b", ".hidden", ""])
def test_a_name_that_is_no_folder_name_is_refused(name):
    with pytest.raises(msgspec.ValidationError):
        registry.parse_registry(entry(name=name))


def test_a_file_without_a_whole_hash_is_refused():
    with pytest.raises(msgspec.ValidationError):
        registry.parse_registry(entry(sha="abc"))


def test_an_unknown_name_brings_the_nearest_one():
    with pytest.raises(ModelUnknown, match="bge-smal") as caught:
        registry.find_model("bge-smal-en-v1.5")
    assert "bge-small-en-v1.5" in caught.value.fix
    assert caught.value.exit_code == 2


def test_two_sources_of_the_same_bytes_are_one_build(tmp_path):
    one = wheel_source(make_wheel(tmp_path, "one"))
    two = wheel_source(make_wheel(tmp_path, "two"))
    assert len(make_model(one, two).builds()) == 1


def test_other_bytes_are_another_build_with_another_name(tmp_path):
    one = wheel_source(make_wheel(tmp_path, "one"))
    other = FILES | {"model.onnx": b"other weights"}
    two = wheel_source(make_wheel(tmp_path, "two", other), other)
    first, second = make_model(one, two).builds()
    assert first.full_name != second.full_name
    assert first.folder != second.folder


@pytest.mark.parametrize(
    "change",
    [{"pooling": "cls"}, {"query_prefix": "q: "}, {"passage_prefix": "p: "}, {"max_tokens": 9}],
    ids=str,
)
def test_whatever_changes_a_vector_changes_the_name_and_not_the_folder(tmp_path, change):
    source = wheel_source(make_wheel(tmp_path))
    (before,), (after,) = make_model(source).builds(), make_model(source, **change).builds()
    assert before.full_name != after.full_name
    assert before.folder == after.folder


def test_what_does_not_change_a_vector_keeps_the_name(tmp_path):
    source = wheel_source(make_wheel(tmp_path))
    (before,), (after,) = make_model(source).builds(), make_model(source, about="x").builds()
    assert before.full_name == after.full_name


def test_a_full_name_finds_exactly_its_build():
    wanted = real("bge-small-en-v1.5").builds()[1]
    _, found = registry.find_model(wanted.full_name)
    assert found == [wanted]


def test_a_print_that_is_no_longer_known_sends_to_the_model():
    with pytest.raises(ModelUnknown) as caught:
        registry.find_model("bge-small-en-v1.5@000000000000")
    assert "did you mean bge-small-en-v1.5?" in caught.value.fix
