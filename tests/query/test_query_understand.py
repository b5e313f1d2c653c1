"""Text becomes a plan: what is a must, what is wanted, and what stays text."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from ragvault.config import profiles
from ragvault.config.settings import Query
from ragvault.errors import UsageError
from ragvault.plan import (
    And,
    Dated,
    HasPart,
    HasTask,
    InLanguage,
    LinkedBy,
    LinksTo,
    MatchesWords,
    Moment,
    NameContains,
    Not,
    Or,
    Phrase,
    Property,
    Tagged,
    UnderHeading,
    Value,
    Words,
)
from ragvault.query.understand import understand

FLOUR = MatchesWords(Words("flour", "body", every=True))
NOW = datetime(2024, 3, 13, 15, 0, tzinfo=timezone.utc)


def plan(query, settings=profiles.config("default").query, hypothesis=None):  # noqa: B008
    return understand(query, settings, now=NOW, hypothesis=hypothesis)


def must(word):
    return MatchesWords(Words(word, every=True))


def day(year, month, date):
    at = datetime(year, month, date, tzinfo=timezone.utc).timestamp()
    return Moment(at, at)


# Operators


@pytest.mark.parametrize(
    ("query", "leaf"),
    [
        ("tag:inbox", Tagged("inbox")),
        ("tag:#inbox/to-read", Tagged("inbox/to-read")),
        ("TAG:inbox", Tagged("inbox")),
        ("path:a/b", NameContains("path", "a/b")),
        ("file:meeting", NameContains("file", "meeting")),
        ('title:"two words"', NameContains("title", "two words")),
        (r'title:"a \"b\""', NameContains("title", 'a "b"')),
        ("title:“two words”", NameContains("title", "two words")),
        ("alias:JFK", NameContains("alias", "JFK")),
        ("heading:Method", UnderHeading("Method")),
        ('heading:"## Method"', UnderHeading("Method")),
        ("lang:rs", InLanguage(("rust", "rs"))),
        ("lang:COBOL", InLanguage(("cobol",))),
        ("has:Code", HasPart("code")),
        ("link:Home", LinksTo("Home")),
        ("linkto:[[My Note#Part|label]]", LinksTo("My Note", ("Part",))),
        ("link:Home#Part", LinksTo("Home", ("Part",))),
        ('link:"My Note#Part#Sub part"', LinksTo("My Note", ("Part", "Sub part"))),
        ("link:Home#^id", LinksTo("Home", ("^id",))),
        ("link:C#", LinksTo("C#")),
        ('link:"Issue #5"', LinksTo("Issue #5")),
        ('linkto:"C# basics"', LinksTo("C# basics")),
        ("linkedby:Home#Part", LinkedBy("Home")),
        ("linkedby:[[Home#Part]]", LinkedBy("Home")),
        ('linkedby:"My Note"', LinkedBy("My Note")),
        ('task-todo:""', HasTask("", "todo")),
        ("[status]", Property("status")),
        ("[status:null]", Property("status", "empty")),
        ('[status:""]', Property("status", "empty")),
        ('[status:"null"]', Property("status", "=", Value("null"))),
        ("[rating:>5]", Property("rating", ">", Value("5", 5.0))),
        ("[rating:<=-2.5]", Property("rating", "<=", Value("-2.5", -2.5))),
        ("[rating:..5]", Property("rating", "<=", Value("5", 5.0))),
        ("[rating:1..5]", Property("rating", "..", Value("1", 1.0), Value("5", 5.0))),
        ('["my prop":x]', Property("my prop", "=", Value("x"))),
        ("[my prop:x y]", Property("my prop", "=", Value("x y"))),
        ("[up:[[Home]]]", Property("up", "=", Value("[[Home]]"))),
        ("[a:x OR y]", Or((Property("a", "=", Value("x")), Property("a", "=", Value("y"))))),
        ('[a:"x OR y"]', Property("a", "=", Value("x OR y"))),
        ("since:2024-03-01", Dated("date", day(2024, 3, 1))),
        ("before:2024-03", Dated("date", None, day(2024, 3, 1))),
        ("created:2024-03", Dated("created", day(2024, 3, 1), day(2024, 4, 1))),
        ("created:>2024-03", Dated("created", day(2024, 4, 1))),
        ("modified:<=yesterday", Dated("modified", None, day(2024, 3, 13))),
        ('modified:>="last week"', Dated("modified", day(2024, 3, 4))),
        ("date:2024-01..2024-03", Dated("date", day(2024, 1, 1), day(2024, 4, 1))),
        ("date:..2024-03", Dated("date", None, day(2024, 4, 1))),
    ],
)
def test_an_operator_alone_is_one_condition_and_lists_notes(query, leaf):
    found = plan(query)

    assert found.filter == leaf
    assert found.listing
    assert (found.text, found.keyword_query, found.warnings) == ("", None, ())


@pytest.mark.parametrize(
    ("query", "leaf", "keyword_query"),
    [
        ("content:flour", FLOUR, FLOUR.query),
        ('content:"a b"', MatchesWords(Phrase("a b", "body")), Phrase("a b", "body")),
        (
            "code:getUser",
            MatchesWords(Words("getUser", "code", every=True), "code"),
            Words("getUser"),
        ),
        ("task:call", HasTask("call"), Words("call")),
        ("task-done:call", HasTask("call", "done"), Words("call")),
    ],
)
def test_operators_about_text_also_search_for_it(query, leaf, keyword_query):
    found = plan(query)

    assert not found.listing
    assert found.keyword_query == keyword_query
    assert found.text
    assert found.filter == leaf


def test_conditions_side_by_side_are_all_musts():
    assert plan("tag:a has:code").filter == And((Tagged("a"), HasPart("code")))
    assert plan("tag:a AND has:code").filter == And((Tagged("a"), HasPart("code")))


def test_side_by_side_binds_closer_than_or():
    first, second = And((Tagged("a"), Tagged("b"))), Tagged("c")
    assert plan("tag:a tag:b OR tag:c").filter == Or((first, second))
    third = Or((Tagged("b"), Tagged("c")))
    assert plan("tag:a (tag:b OR tag:c)").filter == And((Tagged("a"), third))


def test_the_values_of_an_operator_may_be_a_group():
    assert plan("tag:(a OR b)").filter == Or((Tagged("a"), Tagged("b")))
    assert plan("-tag:(a OR b)").filter == Not(Or((Tagged("a"), Tagged("b"))))
    assert plan('file:("x y" -z)').filter == And(
        (NameContains("file", "x y"), Not(NameContains("file", "z")))
    )


def test_a_minus_negates_conditions_and_groups():
    assert plan("-tag:a").filter == Not(Tagged("a"))
    assert plan("-[status:draft]").filter == Not(Property("status", "=", Value("draft")))
    assert plan("-(tag:a tag:b)").filter == Not(And((Tagged("a"), Tagged("b"))))


def test_a_vault_is_chosen_and_no_condition():
    found = plan("bread in:notes in:work")

    assert found.vaults == ("notes", "work")
    assert (found.filter, found.text) == (None, "bread")


# Text


def test_words_are_wanted_and_no_must():
    found = plan("sourdough starter")

    assert (found.text, found.keyword_query, found.filter) == (
        "sourdough starter",
        Words("sourdough starter"),
        None,
    )
    assert not found.listing


def test_a_word_behind_a_minus_is_excluded_and_not_embedded():
    found = plan("bread -rye")

    assert found.text == found.embed == "bread"
    assert found.filter == Not(must("rye"))
    assert found.keyword_query == And((Words("bread"), Not(Words("rye", every=True))))


def test_a_phrase_must_be_there_and_the_words_beside_it_need_not():
    found = plan('bread "rye flour"')
    phrase = Phrase("rye flour")

    assert found.filter == MatchesWords(phrase)
    assert found.keyword_query == And((Or((Words("bread"), phrase)), phrase))
    assert found.text == "bread rye flour"
    assert found.phrases == ("rye flour",)


def test_a_phrase_is_only_preferred_where_the_setting_says_so():
    found = plan('bread "rye flour"', Query(phrases="prefer"))

    assert found.filter is None
    assert found.keyword_query == Or((Words("bread"), Phrase("rye flour")))


def test_a_phrase_alone_is_asked_once():
    assert plan('"rye flour"').keyword_query == Phrase("rye flour")


@pytest.mark.parametrize(
    ("once", "joint"),
    [('"rye flour"', " "), ("tag:a", " "), ("-rye", " "), ("tag:a", " OR "), ("[a:x]", " OR ")],
)
def test_a_condition_said_200_times_is_said_once(once, joint):
    found, single = plan(joint.join([once] * 200)), plan(once)

    assert (found.filter, found.keyword_query) == (single.filter, single.keyword_query)


def test_words_with_or_between_them_filter_nothing():
    found = plan("rye OR spelt flour")

    assert found.filter is None
    assert found.keyword_query == Or((Words("rye", every=True), Words("spelt flour", every=True)))
    assert found.text == "rye spelt flour"


def test_a_word_beside_or_and_a_condition_is_a_must():
    found = plan("tag:recipe OR rye")

    assert found.filter == Or((Tagged("recipe"), must("rye")))
    assert (found.text, found.keyword_query) == ("rye", Words("rye"))


def test_what_must_not_be_there_may_be_text_and_conditions_at_once():
    found = plan("bread -(rye tag:old)")

    assert found.filter == Not(And((must("rye"), Tagged("old"))))
    assert found.keyword_query == Words("bread")


@pytest.mark.parametrize(
    "query",
    [
        "Re: budget",
        "12:30 meeting",
        "http://x.y/z",
        "file:///etc/hosts",
        "std::string key:: value",
        r"C:\notes c:/notes d:notes",
        "mailto:me@x.org localhost:8080 web1:8080",
        "note:) src:/usr :smile:",
        "x IS NOT NULL, DO NOT ENTER, why NOT",
        "TypeError: window.moment is not a function",
        "Access-Control-Allow-Origin: *",
        "git reset --hard",
        "malformed query -- Invalid token",
        "[onCompletion:: delete]",
        "[x] done [ ] open",
        "[1] see [^2] and [!note]",
        "[label](http://x)",
        "f(x) g()",
        ":) and :(",
        "1) first",
        'a 5" pipe',
        "a - b",
        "a -> b",
        "OR gate",
        "don't",
        "'); DROP TABLE notes; --",
        "well-known C++ @scope/pkg #12 a#b #, # x",
        "“unclosed curly",
    ],
)
def test_ordinary_text_stays_text(query):
    found = plan(query)

    assert (found.text, found.filter, found.warnings) == (query, None, ())


@pytest.mark.parametrize(
    ("query", "same"),
    [
        ("#inbox", "tag:inbox"),
        ("bread #inbox/to-read", "bread tag:inbox/to-read"),
        ("-#inbox bread", "-tag:inbox bread"),
        ("(#a OR #b) bread", "(tag:a OR tag:b) bread"),
        ("tag:(#a OR b)", "tag:(a OR b)"),
        ("#日記", "tag:日記"),
    ],
)
def test_a_hash_is_a_tag(query, same):
    assert plan(query).filter == plan(same).filter
    assert plan(query).text == plan(same).text


@pytest.mark.parametrize(
    "query", ["in:a OR in:b", "(in:a OR in:b) bread", "bread in:(a OR b)", "in:a in:b bread"]
)
def test_vaults_can_be_alternatives(query):
    assert plan(query).vaults == ("a", "b")
    assert plan(query).filter is None


@pytest.mark.parametrize("query", ["in:a OR bread", "(in:a tag:x) OR in:b", "-(in:a OR in:b) x"])
def test_vaults_cannot_be_an_alternative_to_anything_else(query):
    with pytest.raises(UsageError, match="cannot be excluded"):
        plan(query)


def test_code_and_links_stand_together_as_words():
    found = plan("`tag:x` in [[My Note|here]]")

    assert found.text == "tag:x in My Note here"
    assert found.filter is None


@pytest.mark.parametrize("query", ['"status:draft"', "`author:bob` x", "[kind:a:b]", "tag:a:b"])
def test_a_colon_in_quotes_backticks_or_a_value_is_no_operator(query):
    assert plan(query).warnings == ()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("tga:recipe bread", "tga: was searched as text; did you mean tag:?"),
        ("hedaing:x", "did you mean heading:?"),
        ("section:x bread", "write heading:"),
        ("name:foo", "write file: or title:"),
        ("foo:bar", "“foo:” is not an operator and was searched as text"),
        ("status:draft", "for a property, write [status:draft]"),
        ('Author:"Bob Smith" x', 'for a property, write [Author:"Bob Smith"]'),
        ("(due_2:>3) x", "[due_2:>3]"),
        ("größe:5", "[größe:5]"),
        ("status:(a OR b)", "[status:…]"),
        ("type:a author:b type:c", "“type:”, “author:” are not operators and were"),
        ("a:x bb:x cc:x dd:x ee:x", "“bb:”, “cc:”, “dd:” … are not operators"),
        ("cat NOT dog", "to exclude something, write -dog"),
        ("cat AND NOT (dog OR cow)", "write -(…)"),
        ("cat OR", "nothing follows OR: it is searched as a word"),
        ("either OR", "nothing follows OR: it is searched as a word"),
        ("(cat AND)", "nothing follows AND: it is searched as a word"),
        ("tags:x", "write tag:"),
        ("file: not found", "without a space: file:meeting"),
        ("bread tag:", "“tag:” has no value"),
        ("(bread tag:)", "“tag:” has no value"),
        ('bread "!!!"', "“!!!” contains no word"),
        ("bread -→", "a minus was ignored, because no word follows it"),
        ("→", "only vectors can find something"),
    ],
)
def test_what_was_perhaps_meant_otherwise_is_searched_and_said(query, said):
    found = plan(query)

    assert found.filter is None
    assert found.text
    assert len(found.warnings) == 1
    assert said in found.warnings[0]


def test_an_emoji_is_a_word():
    found = plan('🎉 "🎂" -❤️')

    assert not found.warnings
    assert found.filter == And(
        (MatchesWords(Phrase("🎂")), Not(MatchesWords(Words("❤️", every=True)))),
    )
    assert not plan("🎉").warnings


# Mistakes


@pytest.mark.parametrize(
    ("query", "message", "fix"),
    [
        ("", "nothing to search for", "type some words or a filter"),
        (" \n ", "nothing to search for", "type some words or a filter"),
        ('""', "nothing to search for", "type some words or a filter"),
        ("( )", "nothing to search for", "type some words or a filter"),
        ("has:unicorn", "has:unicorn", "use has:code, has:table, has:task or has:image"),
        ("has:tabel", "has:tabel", "did you mean has:table?"),
        ('"open bread', "an opening quote is never closed", 'close it: "open bread"'),
        ('tag:"open', "an opening quote is never closed", "close it"),
        ("(a b", "an opening parenthesis is never closed", "close it with )"),
        ("tag:(a", "an opening parenthesis is never closed", "close it with )"),
        ("[status:draft", "an opening bracket is never closed", "close it with ]"),
        ('tag:""', "tag: needs a value", "tag:inbox"),
        ("tag:()", "tag: needs a value", "tag:inbox"),
        ('tag:"two words"', "cannot be a tag", "no spaces"),
        ("tag:#", "cannot be a tag", "no spaces"),
        ("[status:]", "needs a value", "[status]"),
        ("[a:!=5]", "no comparison !=", "-[a:5]"),
        ("[rating>3]", "needs a colon", "write [rating:>3]"),
        ("[rating > 3] x", "needs a colon", "write [rating:>3]"),
        ("[rating=3]", "needs a colon", "write [rating:3]"),
        ("[rating!=3]", "needs a colon", "write -[rating:3]"),
        ("[due<=2024-03-01T09:30]", "needs a colon", "write [due:<=2024-03-01T09:30]"),
        ("[rating:5..3]", "“5..3” ends before it begins", "the smaller value first"),
        ("[due:2024-03..2024-02]", "ends before it begins", "the smaller value first"),
        ("[a:>high]", "neither a number nor a date", "[a:>5]"),
        ("since:soon", "“soon” is not a date", "2024-03-01"),
        ("since:last week", "“last” is not a date", '"last week"'),
        ("since:two weeks ago", "“two” is not a date", '"3 days ago"'),
        ("since:9999", "“9999” is not a date", "a date is 2024"),
        ("created:2024-13", "“2024-13” is not a date", "2024-03"),
        ("created:2024-02-30", "not a date", "2024-03"),
        ("created:..", "a range needs a date", "2024-01..2024-03"),
        ("created:2024..2023", "ends before it begins", "the earlier date first"),
        ("-in:notes bread", "cannot be excluded", "in:notes"),
        ("tag:(title:x)", "title: cannot be used inside tag:( )", "outside the parentheses"),
        ("link:[[#part]]", "does not name a note", "link:"),
        ("(" * 50 + "a" + ")" * 50, "nested more than 40 deep", "fewer"),
        ("-(" * 50 + "a" + ")" * 50, "nested more than 40 deep", "fewer"),
        (" OR ".join(f"tag:t{i}" for i in range(101)), "more than 100 conditions", "leave some"),
        (f"[a:{' OR '.join('x' * 101)}]", "more than 100 conditions", "leave some out"),
        (" OR ".join(f"w{i}" for i in range(251)), "more than 250 words or phrases", "without OR"),
        ("a" * 10_001, "the query is too long: 10,001 characters", "words or sentences"),
    ],
)
def test_what_cannot_be_meant_gets_a_message_and_a_cure(query, message, fix):
    with pytest.raises(UsageError) as caught:
        plan(query)

    assert message in str(caught.value)
    assert fix in caught.value.fix


# A hypothesis


def test_a_hypothesis_is_embedded_as_it_is_in_place_of_the_query():
    text = 'To add a tool: edit "server.py"\n -and restart'
    found = plan("how do I add a tool? tag:docs", hypothesis=text)

    assert found.embed == text
    assert found.text == "how do I add a tool?"
    assert found.filter == Tagged("docs")
    assert not found.expandable


def test_a_hypothesis_needs_no_query_and_makes_no_listing():
    found = plan("tag:docs", hypothesis="restart the server")

    assert not found.listing
    assert plan("", hypothesis="restart").embed == "restart"


def test_a_hypothesis_has_the_limit_of_a_query():
    assert plan("", hypothesis="a" * 10_000).embed == "a" * 10_000
    with pytest.raises(UsageError, match="the hypothesis is too long: 10,001 characters"):
        plan("", hypothesis="a" * 10_001)


def test_a_hypothesis_is_not_empty():
    with pytest.raises(UsageError, match="empty"):
        plan("x", hypothesis=" ")


def test_a_vault_alone_lists_its_notes():
    found = plan("in:notes")
    assert (found.listing, found.vaults, found.filter) == (True, ("notes",), None)
    assert found.parse == "notes in the vault notes, newest first"


@pytest.mark.parametrize(
    "query",
    [
        *("docker run -d nginx", "git commit --amend -no-edit", "ls -l -a src", "tar -x -vf a.tar"),
        *("ls -la", "tar -xzf a.tar.gz", "rm -rf build", "docker run -it ubuntu", "ps -aux"),
        *("sudo apachectl -graceful", "$ java -jar app.jar", "find . -name notes"),
    ],
)
def test_a_dash_in_a_pasted_command_excludes_nothing_and_the_answer_says_so(query):
    plan = understand(query, profiles.config("default").query, now=datetime(2024, 3, 1))
    assert plan.filter is None
    assert plan.text == plan.parse == query
    assert any("part of a command" in each for each in plan.warnings)


@pytest.mark.parametrize(
    "query",
    [
        *("bread -rye", "bread -é", "docker -d -tag:x", 'run -d -"a b"', "sudoku -hard", "-la"),
        *("docker -kubernetes", "git -github", "a loaf. -rye", "the ls -la", "e.g. bread -rye"),
    ],
)
def test_a_dash_before_a_word_or_a_condition_still_excludes(query):
    assert (
        understand(query, profiles.config("default").query, now=datetime(2024, 3, 1)).filter
        is not None
    )
