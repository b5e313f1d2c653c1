"""The graph: what links say about notes, the same whatever order they are read in."""

from __future__ import annotations

import subprocess
import sys

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragvault.config.settings import Graph
from ragvault.index.graph import Backlinks, Edge, backlinks, link_share, list_weights, weight_of
from ragvault.index.graph_communities import build, communities, stamp
from ragvault.index.graph_neighbours import neighbours

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
    assert backlinks(links) == {9: Backlinks(notes=2, links=3), 1: Backlinks(notes=1, links=1)}


def test_a_link_to_oneself_is_no_backlink():
    assert backlinks([Edge(1, 1), Edge(1, 1, "embed", 0, 2)]) == {}


@given(rows)
def test_backlinks_equal_counting_by_hand(links):
    for note in range(1, 10):
        here = [edge for edge in links if edge.target == note != edge.source]
        expected = Backlinks(len({edge.source for edge in here}), len(here))
        assert backlinks(links).get(note, Backlinks(0, 0)) == expected


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
    lists = list_weights(links, {(1, None): 0.9, (2, None): 0.1}, Graph(list_links=5))
    assert lists == {(1, None): 0.1}
    assert weight_of(Edge(1, 10), lists) == 0.1
    assert weight_of(Edge(2, 10), lists) == 1.0


def test_a_short_list_is_not_damped():
    assert list_weights(index_note(1, range(5)), {(1, None): 1.0}, Graph(list_links=5)) == {}


def test_a_list_in_a_section_damps_that_section_only():
    links = index_note(1, range(10, 20), section=3) + index_note(1, [30], section=0)
    lists = list_weights(links, {(1, None): 0.2, (1, 3): 1.0}, Graph(list_links=5))
    assert lists == {(1, 3): 0.5}
    assert [weight_of(edge, lists) for edge in links[-2:]] == [0.5, 1.0]


def test_an_alias_ties_half_as_closely():
    assert weight_of(Edge(1, 2, "alias"), {}) == 0.5


# --- Communities ---


def test_groups_that_link_each_other_are_found():
    found = communities([*ring(1, 2, 3, 4), *ring(5, 6, 7, 8), Edge(4, 5)], Graph())
    assert found[1] == found[2] == found[3] == found[4]
    assert found[5] == found[6] == found[7] == found[8]
    assert found[1] != found[5]


def test_an_index_does_not_draw_notes_out_of_their_groups():
    """Undamped, an index takes with it the notes that have only one link besides its own."""
    pairs = [Edge(note, note + 1) for note in range(10, 50, 2)]
    links = [*pairs, *index_note(1, range(10, 50))]
    lists = list_weights(links, {(1, None): 1.0}, Graph(list_links=1))
    damped, plain = communities(links, Graph(), lists=lists), communities(links, Graph())
    assert len(set(damped.values())) > len(set(plain.values()))


def test_a_note_without_links_has_no_community():
    assert communities([Edge(1, 2), Edge(3, 3)], Graph()).keys() == {1, 2}
    assert communities([], Graph()) == {}


@settings(max_examples=40)
@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(links, random):
    shuffled = random.sample(links, len(links))
    assert communities(shuffled, Graph()) == communities(links, Graph())
    assert stamp(shuffled, Graph(), {}) == stamp(links, Graph(), {})
    assert backlinks(shuffled) == backlinks(links)
    assert neighbours(shuffled, {1: 1, 2: 2}, 2) == neighbours(links, {1: 1, 2: 2}, 2)
    assert list(build(shuffled).edges(data=True)) == list(build(links).edges(data=True))


@settings(max_examples=40)
@given(rows, st.dictionaries(notes, st.integers(1, 5)))
def test_what_was_before_changes_numbers_and_never_members(links, previous):
    def members(found):
        return {frozenset(n for n in found if found[n] == number) for number in found.values()}

    first = communities(links, Graph())
    assert members(communities(links, Graph(), previous=previous)) == members(first)
    assert communities(links, Graph(), previous=first) == first


def test_a_community_keeps_its_number_while_most_of_its_members_stay():
    before = communities([*ring(1, 2, 3, 4), *ring(15, 16, 17)], Graph())
    after = communities([*ring(0, 1, 2, 3), *ring(15, 16, 17, 4)], Graph(), previous=before)
    assert after[1] == after[0] == before[1]
    assert after[15] == after[4] == before[15]


def test_a_new_community_gets_a_number_nobody_had():
    before = {1: 7, 2: 7}
    after = communities([*ring(1, 2), *ring(5, 6)], Graph(), previous=before)
    assert after == {1: 7, 2: 7, 5: 8, 6: 8}


def test_the_stamp_changes_with_links_and_settings_and_not_with_what_says_nothing_new():
    links = ring(1, 2, 3)
    same = stamp(links, Graph(), {})
    assert stamp([*links, Edge(1, 2), Edge(3, 3)], Graph(), {}) == same
    others = [
        stamp([*links, Edge(3, 4)], Graph(), {}),
        stamp(links, Graph(seed=1), {}),
        stamp(links, Graph(resolution=2.0), {}),
        stamp(links, Graph(), {(1, None): 0.5}),
    ]
    assert len({same, *others}) == 5


def test_the_stamp_changes_with_the_order_of_names_and_not_with_names():
    links, names = ring(1, 2, 3), {1: "a.md", 2: "b.md", 3: "c.md", 4: "d.md"}
    same = stamp(links, Graph(), {}, names)
    assert stamp(links, Graph(), {}, {**names, 2: "bb.md", 4: "0.md"}) == same
    assert stamp(links, Graph(), {}, {**names, 2: "z.md"}) != same


def test_the_graph_is_directed_and_typed_and_knows_sections():
    graph = build([Edge(1, 2, "embed", 0, 4), Edge(1, 2, "link"), Edge(2, 1)])
    assert graph.number_of_edges(1, 2) == 2
    first = graph.get_edge_data(1, 2)[0]
    assert first == {"kind": "embed", "source_section": 0, "target_section": 4}


def modularity(links, found):
    groups = [{note for note in found if found[note] == n} for n in set(found.values())]
    graph = nx.Graph()
    graph.add_edges_from((edge.source, edge.target) for edge in links)
    return nx.community.modularity(graph, groups)


def test_communities_are_as_good_as_those_networkx_finds():
    """Zachary's karate club, the graph every such algorithm is tried on."""
    club = nx.karate_club_graph()
    links = [Edge(*pair) for pair in club.edges]
    theirs = nx.community.louvain_communities(club, weight=None, seed=0)
    assert modularity(links, communities(links, Graph())) > 0.98 * modularity(
        links, {note: i for i, group in enumerate(theirs) for note in group}
    )


weighted = st.dictionaries(st.tuples(notes, sections), st.floats(0.001, 1), max_size=12)


@given(rows, weighted, st.floats(0.1, 4), st.integers(0, 3))
def test_the_search_for_communities_ends_whatever_the_weights(links, lists, resolution, seed):
    found = communities(links, Graph(resolution=resolution, seed=seed), lists=lists)
    assert found.keys() == {n for e in links if e.source != e.target for n in e[:2]}


@given(st.lists(edges, max_size=40), st.permutations(range(1, 10)))
def test_with_names_communities_do_not_depend_on_ids(links, order):
    """An index made from scratch has other ids than one that grew, and must agree with it."""
    other = dict(zip(range(1, 10), order, strict=True))
    renamed = [e._replace(source=other[e.source], target=other[e.target]) for e in links]
    found = communities(links, Graph(), names={n: f"{n}.md" for n in range(1, 10)})
    again = communities(renamed, Graph(), names={other[n]: f"{n}.md" for n in range(1, 10)})
    pairs = [(a, b) for a in found for b in found]
    assert all((found[a] == found[b]) == (again[other[a]] == again[other[b]]) for a, b in pairs)


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
        "import sys, ragvault.index.graph_neighbours, ragvault.index.graph_communities\n"
        "assert 'networkx' not in sys.modules and 'numpy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
