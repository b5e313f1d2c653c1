"""Louvain in whole numbers: communities of a graph, found the same way every time, and found.

NetworkX has this algorithm in floating point, where a move that gains nothing can look like one
that gains 1e-17, and two notes then change places for ever (its issue 8739; our links of lists,
with their broken weights, run into it at once). Here weights and the resolution are made whole
numbers, a move must gain at least 1, and what can be gained is bounded: it ends.

Nodes are numbered from 0. Nothing here knows what they stand for.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from fractions import Fraction
from random import Random

Weights = Sequence[Mapping[int, int]]  # for each node its neighbours, itself not among them


def louvain(weights: Weights, resolution: float, seed: int) -> list[list[int]]:
    """Groups of nodes such that no node, and then no group, gains by moving to another."""
    random, rate = Random(seed), Fraction(resolution).limit_denominator(1000)
    degrees = [sum(near.values()) for near in weights]
    groups = [[node] for node in range(len(weights))]
    while True:
        homes = _settle(weights, degrees, rate, random)
        if len(set(homes)) == len(homes):
            return groups
        weights, degrees, groups = _shrink(weights, degrees, groups, homes)


def _settle(weights: Weights, degrees: Sequence[int], rate: Fraction, random: Random) -> list[int]:
    """Move nodes, one at a time, until none wants to; who lost a neighbour is asked again."""
    homes = list(range(len(weights)))
    total, whole = list(degrees), sum(degrees)
    queue = deque(random.sample(homes, len(homes)))
    waiting = set(queue)
    while queue:
        node = queue.popleft()
        waiting.discard(node)
        total[homes[node]] -= degrees[node]
        home = _best(node, homes, weights[node], total, degrees[node], whole, rate)
        total[home] += degrees[node]
        if home != homes[node]:
            homes[node] = home
            for near in weights[node]:
                if homes[near] != home and near not in waiting:
                    waiting.add(near)
                    queue.append(near)
    return homes


def _best(
    node: int,
    homes: Sequence[int],
    near: Mapping[int, int],
    total: Sequence[int],
    degree: int,
    whole: int,
    rate: Fraction,
) -> int:
    """The community this node adds most to: its own unless another is truly better.

    The gain in modularity times 2 m squared times the resolution's denominator: a whole number.
    """
    ties: dict[int, int] = defaultdict(int)
    for other, weight in near.items():
        ties[homes[other]] += weight
    linked, expected = whole * rate.denominator, rate.numerator * degree
    own = homes[node]
    best, most = own, linked * ties.get(own, 0) - expected * total[own]
    for home, weight in ties.items():
        gain = linked * weight - expected * total[home]
        if gain > most or (gain == most and best != own and home < best):
            best, most = home, gain
    return best


def _shrink(
    weights: Weights, degrees: Sequence[int], groups: Sequence[list[int]], homes: Sequence[int]
) -> tuple[list[dict[int, int]], list[int], list[list[int]]]:
    """Communities become the nodes of a smaller graph."""
    number = {home: place for place, home in enumerate(dict.fromkeys(homes))}
    smaller: list[dict[int, int]] = [defaultdict(int) for _ in number]
    members: list[list[int]] = [[] for _ in number]
    sums = [0] * len(number)
    for node, home in enumerate(homes):
        place = number[home]
        sums[place] += degrees[node]
        members[place] += groups[node]
        for near, weight in weights[node].items():
            if homes[near] != home:
                smaller[place][number[homes[near]]] += weight
    return smaller, sums, members
