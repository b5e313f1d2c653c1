"""Which model a vault uses: it keeps its own until somebody says otherwise."""

import pytest

from ragvault.models.load import choose_model

OLD, NEW = "bge-small@111111111111", "granite@222222222222"


def test_a_new_vault_takes_the_configured_model():
    assert choose_model(stored="", configured="bge-small", explicit=False) == "bge-small"


def test_a_new_default_of_a_new_release_changes_nothing():
    assert choose_model(stored=OLD, configured="granite", explicit=False) == OLD


def test_a_model_somebody_named_is_embedded():
    assert choose_model(stored=OLD, configured="granite", explicit=True) == "granite"


@pytest.mark.parametrize("configured", ["bge-small", OLD])
def test_naming_the_model_it_has_changes_nothing(configured):
    assert choose_model(stored=OLD, configured=configured, explicit=True) == OLD


def test_naming_another_build_of_the_same_model_is_a_change():
    other = "bge-small@333333333333"
    assert choose_model(stored=OLD, configured=other, explicit=True) == other


def test_a_path_with_an_at_sign_is_not_taken_for_another_model():
    stored = "/home/me@work/model@111111111111"
    assert choose_model(stored=stored, configured="/home/me@work/model", explicit=True) == stored
