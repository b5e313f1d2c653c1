"""The graph: what links say about notes, the same whatever order they are read in."""

from __future__ import annotations

import os
import subprocess
import sys

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.index.graph import (
    LINK,
    BacklinkCount,
    Edge,
    backlinks,
    communities,
    link_graph,
    link_share,
    list_weights,
    majority,
    neighbours,
    numbered,
    share_changed,
    shortest_path,
    stamp,
    ties,
    weight_of,
)

sections = st.none() | st.integers(0, 3)
kinds = st.sampled_from(["link", "embed", "alias", "property"])
notes = st.integers(1, 9)
edges = st.builds(Edge, notes, notes, kinds, sections, sections)
rows = st.lists(edges, max_size=40)


def ring(*members):
    """Every member links to every other."""
    return [Edge(a, b) for a in members for b in members if a != b]


# --- Backlinks ---


def test_backlinks_count_notes_and_links_apart():
    links = [Edge(1, 9), Edge(1, 9, "embed"), Edge(2, 9), Edge(9, 1)]
    assert backlinks(links) == {
        9: BacklinkCount(notes=2, links=3),
        1: BacklinkCount(notes=1, links=1),
    }


def test_a_link_to_oneself_is_no_backlink():
    assert backlinks([Edge(1, 1), Edge(1, 1, "embed", 0, 2)]) == {}


@given(rows)
def test_backlinks_equal_counting_by_hand(links):
    for note in range(1, 10):
        here = [edge for edge in links if edge.target == note != edge.source]
        expected = BacklinkCount(len({edge.source for edge in here}), len(here))
        assert backlinks(links).get(note, BacklinkCount(0, 0)) == expected


# --- Lists of links ---


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("## Related\n- [[A]]\n- [[B|the other]]\n", 1.0),
        ("1. [[A]] how a long sentence describes what is to be found there\n", 1.0),
        ("- [ ] [Baking](baking.md)\n- [ ] **[[Rye]]**\n", 1.0),
        ("[[A]], [[B]] and [[C]]\n", 1.0),
        ("| [[A]] | first |\n|---|---|\n| [[B]] | second |\n", 1.0),
        ("[[Rye]] is a grain that grows where wheat does not.\n", 0.0),
        ("- rye, which [[Rye|we met before]], takes more water than wheat does\n", 0.0),
        ("A sentence.\n\n- [[A]]\n", 0.5),
        ("# Only a heading with [[A]]\n", 0.0),
        ("", 0.0),
    ],
)
def test_the_share_of_lines_that_are_there_for_their_links(text, share):
    assert link_share(text) == share


def index_note(note, targets, section=None):
    return [Edge(note, target, "link", section) for target in targets]


def test_a_list_hands_out_the_weight_of_a_few_links():
    links = index_note(1, range(10, 60)) + index_note(2, range(10, 60))
    lists = list_weights(links, {(1, None): 0.9, (2, None): 0.1})
    assert lists == {(1, None): 0.1}
    assert weight_of(Edge(1, 10), lists) == 0.1
    assert weight_of(Edge(2, 10), lists) == 1.0


def test_a_short_list_is_not_damped():
    assert list_weights(index_note(1, range(5)), {(1, None): 1.0}) == {}


def test_a_list_in_a_section_damps_that_section_only():
    links = index_note(1, range(10, 20), section=3) + index_note(1, [30], section=0)
    lists = list_weights(links, {(1, None): 0.2, (1, 3): 1.0})
    assert lists == {(1, 3): 0.5}
    assert [weight_of(edge, lists) for edge in links[-2:]] == [0.5, 1.0]


def test_an_alias_ties_half_as_closely():
    assert weight_of(Edge(1, 2, "alias"), {}) == 0.5


# --- Communities ---


def paths_of(links):
    return {note: f"{note:02}.md" for edge in links for note in edge[:2]}


def grouped(links, lists=None, paths=None, previous=None):
    """The number of each note's community, as an index computes them."""
    found, paths = ties(links, lists or {}), paths or paths_of(links)
    return numbered(communities(found, paths), paths, previous or {})


def test_groups_that_link_each_other_are_found():
    found = grouped([*ring(1, 2, 3, 4), *ring(5, 6, 7, 8), Edge(4, 5)])
    assert found[1] == found[2] == found[3] == found[4]
    assert found[5] == found[6] == found[7] == found[8]
    assert found[1] != found[5]


def test_an_index_does_not_draw_notes_out_of_their_groups(monkeypatch):
    """Undamped, an index takes with it the notes that have only one link besides its own."""
    pairs = [Edge(note, note + 1) for note in range(10, 50, 2)]
    links = [*pairs, *index_note(1, range(10, 50))]
    monkeypatch.setattr("ragvault.index.graph.LIST_LINKS", 1)
    lists = list_weights(links, {(1, None): 1.0})
    damped, plain = grouped(links, lists=lists), grouped(links)
    assert len(set(damped.values())) > len(set(plain.values()))


def test_a_note_without_links_has_no_community():
    assert grouped([Edge(1, 2), Edge(3, 3)]).keys() == {1, 2}
    assert grouped([]) == {}


@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(links, random):
    shuffled = random.sample(links, len(links))
    assert grouped(shuffled) == grouped(links)
    paths = paths_of(links)
    assert stamp(ties(shuffled, {}), paths) == stamp(ties(links, {}), paths)
    assert backlinks(shuffled) == backlinks(links)
    assert neighbours(shuffled, {1: 1, 2: 2}, 2) == neighbours(links, {1: 1, 2: 2}, 2)
    first, second = (link_graph(ties(each, {}), paths) for each in (shuffled, links))
    assert list(first.edges(data=True)) == list(second.edges(data=True))


@given(rows, st.dictionaries(notes, st.integers(1, 5)))
def test_what_was_before_changes_numbers_and_never_members(links, previous):
    def members(found):
        return {frozenset(n for n in found if found[n] == number) for number in found.values()}

    first = grouped(links)
    assert members(grouped(links, previous=previous)) == members(first)
    assert grouped(links, previous=first) == first


def test_a_community_keeps_its_number_while_most_of_its_members_stay():
    before = grouped([*ring(1, 2, 3, 4), *ring(15, 16, 17)])
    after = grouped([*ring(0, 1, 2, 3), *ring(15, 16, 17, 4)], previous=before)
    assert after[1] == after[0] == before[1]
    assert after[15] == after[4] == before[15]


def test_a_new_community_gets_a_number_nobody_had():
    before = {1: 7, 2: 7}
    after = grouped([*ring(1, 2), *ring(5, 6)], previous=before)
    assert after == {1: 7, 2: 7, 5: 8, 6: 8}


def test_the_stamp_changes_with_links_and_not_with_what_says_nothing_new():
    paths = paths_of(ring(1, 2, 3, 4))

    def stamped(links, lists=None):
        return stamp(ties(links, lists or {}), paths)

    links = ring(1, 2, 3)
    same = stamped(links)
    assert stamped([*links, Edge(1, 2), Edge(3, 3)]) == same
    others = [
        stamped([*links, Edge(3, 4)]),
        stamped(links, lists={(1, None): 0.5}),
    ]
    assert len({same, *others}) == 3


def test_the_stamp_changes_with_the_order_of_paths_and_not_with_paths():
    links, paths = ties(ring(1, 2, 3), {}), {1: "a.md", 2: "b.md", 3: "c.md", 4: "d.md"}
    same = stamp(links, paths)
    assert stamp(links, {**paths, 2: "bb.md", 4: "0.md"}) == same
    assert stamp(links, {**paths, 2: "z.md"}) != same


def test_the_graph_is_directed_and_weighted_and_by_path():
    graph = link_graph(ties([Edge(2, 1), Edge(1, 2, "alias"), Edge(1, 2)], {}), {1: "b", 2: "a"})
    assert list(graph.edges(data="weight")) == [("a", "b", LINK), ("b", "a", LINK)]
    half = link_graph(ties([Edge(1, 2, "alias")], {}), {1: "b", 2: "a"})
    assert list(half.edges(data="weight")) == [("b", "a", LINK // 2)]


def modularity(links, found):
    groups = [{note for note in found if found[note] == n} for n in set(found.values())]
    graph = nx.Graph()
    graph.add_edges_from((edge.source, edge.target) for edge in links)
    return nx.community.modularity(graph, groups)


def test_communities_are_as_good_as_those_of_the_bare_graph():
    """Zachary's karate club, the graph every such algorithm is tried on."""
    club = nx.karate_club_graph()
    links = [Edge(*pair) for pair in club.edges]
    bare = nx.community.louvain_communities(club, weight=None, seed=0)
    assert modularity(links, grouped(links)) > 0.95 * modularity(
        links, {note: i for i, group in enumerate(bare) for note in group}
    )


# Bare, NetworkX 3.6 moves two of these notes from group to group for ever.
RESTLESS = ((0, 13), (1, 11), (3, 5), (3, 9), (4, 8), (6, 10), (7, 0), (8, 4), (11, 1), (13, 7))


def test_notes_that_gain_nothing_by_moving_stay_where_they_are():
    links = [Edge(*pair) for pair in RESTLESS]
    assert grouped(links).keys() == paths_of(links).keys()


weighted = st.dictionaries(st.tuples(notes, sections), st.floats(0.001, 1), max_size=12)


@given(rows, weighted)
def test_the_search_for_communities_ends_whatever_the_weights(links, lists):
    found = grouped(links, lists)
    assert found.keys() == {n for e in links if e.source != e.target for n in e[:2]}


@given(rows, st.permutations(range(1, 10)))
def test_communities_do_not_depend_on_ids(links, order):
    """An index made from scratch has other ids than one that grew, and must agree with it."""
    other = dict(zip(range(1, 10), order, strict=True))
    renamed = [e._replace(source=other[e.source], target=other[e.target]) for e in links]
    found = grouped(links, paths={n: f"{n}.md" for n in range(1, 10)})
    again = grouped(renamed, paths={other[n]: f"{n}.md" for n in range(1, 10)})
    pairs = [(a, b) for a in found for b in found]
    assert all((found[a] == found[b]) == (again[other[a]] == again[other[b]]) for a, b in pairs)


def test_communities_do_not_depend_on_how_texts_are_hashed():
    program = (
        "import random;"
        "from ragvault.index.graph import communities;"
        "r = random.Random(1); ties = {(r.randrange(90), r.randrange(90)): 64 for _ in range(200)};"
        "ties = {t: w for t, w in ties.items() if t[0] != t[1]};"
        "paths = {n: f'{n}.md' for n in range(90)};"
        "print(sorted(map(sorted, communities(ties, paths))))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1


# Until they are computed again


def test_a_new_note_takes_the_community_of_most_of_its_neighbours():
    links = [*ring(1, 2), *ring(3, 4), Edge(9, 1), Edge(9, 3), Edge(4, 9)]
    assert majority(ties(links, {}), {1: 5, 2: 5, 3: 8, 4: 8})[9] == 8


def test_of_equal_neighbours_the_lowest_number_counts():
    assert majority(ties([Edge(9, 1), Edge(3, 9)], {}), {1: 7, 3: 2}) == {1: 7, 3: 2, 9: 2}


def test_a_new_note_that_only_new_notes_link_to_follows_them():
    found = majority(ties([Edge(8, 9), Edge(9, 10), Edge(1, 8), *ring(20, 21)], {}), {1: 3})
    assert found == {1: 3, 8: 3, 9: 3, 10: 3}


def test_a_note_keeps_its_community_while_it_has_a_link_and_no_longer():
    assert majority(ties([Edge(1, 2)], {}), {1: 1, 2: 2, 3: 3}) == {1: 1, 2: 2}


@given(rows, st.dictionaries(notes, st.integers(1, 5)), st.randoms(use_true_random=False))
def test_the_majority_does_not_depend_on_the_order_of_links(links, known, random):
    shuffled = random.sample(links, len(links))
    found = majority(ties(links, {}), known)
    assert majority(ties(shuffled, {}), known) == found
    assert all(found[note] == known[note] for note in found if note in known)


def test_the_share_of_links_that_changed():
    before = ties(index_note(1, range(10, 30)), {})
    assert share_changed(before, before) == 0
    assert share_changed(before, before | {(2, 3): LINK}) == 1 / 20
    assert share_changed(before, {(1, 10): 1}) == 1
    assert share_changed({}, before) == 1
    assert share_changed({}, {}) == 0


# --- Paths ---


def path(links, start, end):
    names = "0abcdefghi"
    graph = link_graph(ties(links, {}), dict(enumerate(names)))
    return "".join(shortest_path(graph, names[start], names[end]))


def test_a_path_follows_links_in_both_directions():
    assert path([Edge(1, 2), Edge(3, 2)], 1, 3) == "abc"
    assert path([Edge(1, 2), Edge(3, 2)], 3, 1) == "cba"


def test_the_fewest_links_count_and_then_how_many_are_followed_backwards():
    around = [Edge(1, 4), Edge(4, 5), Edge(5, 3)]
    assert path([*around, Edge(2, 1), Edge(2, 3)], 1, 3) == "abc"
    assert path([*around, Edge(2, 1), Edge(2, 3), Edge(1, 6), Edge(6, 3)], 1, 3) == "afc"


def test_notes_that_no_links_connect_have_no_path():
    assert path([Edge(1, 2), Edge(3, 4)], 1, 3) == ""
    assert path([Edge(1, 2)], 1, 9) == ""


@given(rows, notes, notes)
def test_a_path_is_as_short_as_the_neighbours_say(links, start, end):
    found = path(links, start, end)
    steps = {n.note: n.steps for n in neighbours(links, {start: 1}, 9)}
    if start != end:
        assert len(found) == (steps[end] + 1 if end in steps else 0)


# --- Neighbours ---


def names(found):
    return [neighbour.note for neighbour in found]


def test_neighbours_are_found_in_both_directions():
    found = neighbours([Edge(1, 2), Edge(3, 1), Edge(4, 5)], {1: 1})
    assert {(n.note, n.direction) for n in found} == {(2, "out"), (3, "in")}


def test_a_neighbour_of_a_better_hit_comes_first():
    assert names(neighbours([Edge(2, 30), Edge(1, 20)], {2: 1, 1: 2})) == [30, 20]


def test_of_one_hit_the_neighbour_that_others_share_comes_first():
    links = [Edge(1, 20), Edge(1, 30), Edge(30, 2), Edge(3, 30)]
    found = neighbours(links, {1: 1, 2: 2, 3: 3})
    assert names(found) == [30, 20]
    assert (found[0].shared, found[0].seed, found[0].rank) == (3, 1, 1.0)


def test_the_first_of_two_legs_are_equally_good():
    links = [Edge(1, 20), Edge(2, 30), Edge(3, 30)]
    assert names(neighbours(links, {1: 1, 2: 1, 3: 2})) == [30, 20]


def test_a_link_of_a_list_counts_like_one_of_a_hit_further_down():
    links = [*index_note(1, range(10, 20)), Edge(2, 30)]
    lists = {(1, None): 0.25}
    assert names(neighbours(links, {1: 1, 2: 2}, lists=lists))[0] == 30
    assert neighbours(links, {1: 1, 2: 2}, lists=lists)[1].rank == 4.0


def test_a_neighbour_brings_the_section_that_the_link_names():
    links = [Edge(1, 2, "link", 0, 5), Edge(1, 2, "link", 3), Edge(3, 1, "link", 7)]
    assert {n.note: n.section for n in neighbours(links, {1: 1})} == {2: 5, 3: 7}


seeds = st.dictionaries(notes, st.integers(1, 3), max_size=3)  # two legs may each have a first


@given(rows, seeds, st.integers(1, 4))
def test_deeper_only_adds_and_seeds_are_never_neighbours(links, seeds, depth):
    near, far = neighbours(links, seeds, depth), neighbours(links, seeds, depth + 1)
    assert far[: len(near)] == near
    assert not set(names(far)) & set(seeds)
    assert len(set(names(far))) == len(far)


@given(rows, seeds, st.integers(1, 4))
def test_neighbours_are_all_that_so_many_steps_can_reach(links, seeds, depth):
    reached = set(seeds)
    for _ in range(depth):
        reached |= {e.target for e in links if e.source in reached} | {
            e.source for e in links if e.target in reached
        }
    assert set(names(neighbours(links, seeds, depth))) == reached - set(seeds)


def test_a_search_needs_no_networkx():
    program = (
        "import sys, ragvault.index.graph\n"
        "assert 'networkx' not in sys.modules and 'numpy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
