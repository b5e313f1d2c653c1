"""Which model a vault uses: it keeps its own until somebody says otherwise."""

import pytest

from ragvault.models.choose import Choice, answering, choose

OLD, NEW = "bge-small@111111111111", "granite@222222222222"


def test_a_new_vault_takes_the_configured_model():
    assert choose(stored=None, configured="bge-small", explicit=False) == Choice("bge-small", None)


def test_a_new_default_of_a_new_release_changes_nothing():
    choice = choose(stored=OLD, configured="granite", explicit=False)
    assert choice == Choice(OLD, OLD)
    assert not choice.changes


def test_a_model_somebody_named_is_embedded_while_the_old_vectors_answer():
    choice = choose(stored=OLD, configured="granite", explicit=True)
    assert choice == Choice("granite", OLD)
    assert choice.changes


@pytest.mark.parametrize("configured", ["bge-small", OLD])
def test_naming_the_model_it_has_changes_nothing(configured):
    assert choose(stored=OLD, configured=configured, explicit=True) == Choice(OLD, OLD)


def test_naming_another_build_of_the_same_model_is_a_change():
    other = "bge-small@333333333333"
    assert choose(stored=OLD, configured=other, explicit=True) == Choice(other, OLD)


def test_a_path_with_an_at_sign_is_not_taken_for_another_model():
    stored = "/home/me@work/model@111111111111"
    assert choose(stored=stored, configured="/home/me@work/model", explicit=True).embeds == stored


def test_the_new_model_answers_once_its_vectors_are_complete():
    assert answering(OLD, NEW, complete=False) == OLD
    assert answering(OLD, NEW, complete=True) == NEW
    assert answering(None, NEW, complete=False) is None


def test_going_on_with_a_change_ends_with_the_new_model_kept():
    stored = answering(OLD, NEW, complete=True)
    assert choose(stored=stored, configured="bge-small", explicit=False) == Choice(NEW, NEW)
