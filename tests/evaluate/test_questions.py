"""Judged questions: what is read, and that nothing unsound is read in silence."""

import pytest

from ragvault.errors import UsageError
from ragvault.evaluate.questions import read_questions

GOOD = '{"id": "q1", "query": "bread", "kind": "keyword", "relevant": [{"note": "a", "grade": 3}]}'


@pytest.fixture
def lines(tmp_path):
    def write(*lines):
        path = tmp_path / "questions.jsonl"
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        return path

    return write


def test_a_question_of_the_contract_is_read(lines):
    (question,) = read_questions(lines(GOOD))
    assert (question.id, question.query, question.kind) == ("q1", "bread", "keyword")
    assert question.grades == {"a": 3}


def test_nothing_relevant_means_that_nothing_answers(lines):
    (question,) = read_questions(lines('{"id": "q", "query": "x", "relevant": []}'))
    assert question.grades == {}


def test_a_note_judged_twice_has_its_best_grade(lines):
    two = '[{"note": "a", "grade": 1, "heading": "x"}, {"note": "a", "grade": 3, "heading": "y"}]'
    (question,) = read_questions(lines(f'{{"id": "q", "query": "x", "relevant": {two}}}'))
    assert question.grades == {"a": 3}


def test_what_the_contract_may_add_later_is_no_error(lines):
    more = GOOD.replace('"kind"', '"wording": "first try", "kind"')
    assert len(read_questions(lines(more, "", more.replace("q1", "q2")))) == 2


@pytest.mark.parametrize(
    "bad",
    [
        "{not json",
        '{"id": "q2", "query": "no judgements"}',
        '{"id": "q2", "query": "", "relevant": []}',
        '{"id": "q2", "query": "x", "relevant": [{"note": "a", "grade": "high"}]}',
        '{"id": "q2", "query": "x", "relevant": [{"grade": 1}]}',
        GOOD,  # the same id again
    ],
)
def test_a_line_that_is_not_sound_is_named(lines, bad):
    path = lines(GOOD, "", bad)
    with pytest.raises(UsageError, match=r"questions\.jsonl:3: ") as caught:
        read_questions(path)
    assert "relevant" in caught.value.fix


def test_a_file_with_no_question_or_none_at_all_is_refused(lines, tmp_path):
    with pytest.raises(UsageError, match="no question"):
        read_questions(lines(""))
    with pytest.raises(UsageError, match="cannot be read"):
        read_questions(tmp_path / "missing.jsonl")
