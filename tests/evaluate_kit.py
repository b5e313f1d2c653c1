"""Builders for the tests of evaluation: answers by their scores, and a small vault to examine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from write_kit import write

from ragvault.evaluate.questions import Judged, Question
from ragvault.evaluate.report import ScoredAnswer
from ragvault.vault import Vault

NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)
FAKE = ("models.static=fake", "models.embedder=fake")


def question(id_: str, *relevant: str, kind: str = "", query: str = "") -> Question:
    """A question that these notes answer; `note#heading` names a heading, `note=2` a grade."""
    judged = []
    for each in relevant:
        name, _, grade = each.partition("=")
        note, _, heading = name.partition("#")
        judged.append(Judged(note, int(grade or 3), heading))
    return Question(id_, query or id_, tuple(judged), kind)


def answer(id_: str, ndcg: float | None, *, kind: str = "", **more: object) -> ScoredAnswer:
    """An answer with this score; None for a question that nothing answers."""
    judged = [] if ndcg is None else ["a.md"]
    scores = {} if ndcg is None else {"ndcg@10": ndcg}
    return ScoredAnswer(question(id_, *judged, kind=kind), scores, **more)  # type: ignore[arg-type]


def answered(scores: Sequence[float], *, kind: str = "") -> list[ScoredAnswer]:
    return [answer(f"q{place}", score, kind=kind) for place, score in enumerate(scores)]


def vault_of(root: Path, files: Mapping[str, str], *flags: str, tier: str = "full") -> Vault:
    """A vault of these notes, indexed with the small model."""
    root.mkdir(parents=True, exist_ok=True)
    write(root, files)
    environ = {"RAGVAULT_HOME": str(root.parent / "home")}
    vault = Vault.open(root, flags=[*FAKE, *flags], environ=environ)
    vault.index(tier)  # type: ignore[arg-type]
    return vault


def with_flags(vault: Vault, *flags: str) -> Vault:
    """The same vault with these settings."""
    environ = {"RAGVAULT_HOME": str(vault.folder.parent.parent)}
    return Vault.open(vault.root, flags=[*FAKE, *flags], environ=environ)


# A small vault with something for every leg, boost and filter.
GARDEN = {
    "Compost.md": (
        "---\naliases: [humus heap]\ntags: [soil]\nimportance: high\n---\n# Compost\n\n"
        "A heap turns kitchen scraps and dry leaves into dark earth within a year. See [[Worms]] "
        "for the quicker way with less room and no smell at all.\n\n## Turning the heap\n\n"
        "Air lets the heap grow hot, and heat kills the seeds of weeds before spring.\n"
    ),
    "Worms.md": (
        "---\ntags: [soil, animals]\nstatus: draft\n---\n# Worms\n\nRed worms eat peelings in a "
        "box under the sink. Their castings feed [[Tomatoes]] better than any powder could.\n"
    ),
    "Tomatoes.md": (
        "---\naliases: [love apples]\ntags: [vegetable]\n---\n# Tomatoes\n\nStake them early and "
        "pinch out the side shoots. Water at the root, because wet leaves invite blight; the whole "
        "story of that disease is in [[Blight]].\n\n## Saving seed\n\nFerment the pulp for three "
        "days, rinse, and dry the seeds on paper.\n\n- [ ] order cane\n"
    ),
    "Blight.md": (
        "# Blight\n\nA mould that travels on warm rain and ruins a bed in a week. Copper helps "
        "little; distance and dry leaves help more than copper, as [[Tomatoes]] show each year.\n"
    ),
    "Watering.md": (
        "# Watering\n\nDeep and seldom is better than often and shallow. The timer in the shed "
        "runs this:\n\n```python\ndef open_valve(minutes):\n    relay.on()\n    sleep(minutes)\n"
        "    relay.off()\n```\n\n| bed | minutes |\n|---|---|\n| north | 12 |\n"
    ),
    "Journal/2026-02-25.md": (
        "# A mild day\n\nSowed broad beans along the fence and repaired the gate that the storm "
        "had lifted. The [[Compost]] steamed when I opened it this morning in the fog.\n"
    ),
    "Tools.md": (
        "# Tools\n\nA spade, a fork and a good knife do nearly all of it. Oil the handles each "
        "winter, and never lend the knife to anybody who owns a dishwasher.\n\n![[spade.png]]\n"
    ),
    "Old watering.md": (
        "# Old watering\n\nEvery evening with the hose for an hour, which made shallow roots and a "
        "large bill. Replaced by what is written in [[Watering]] about the timer.\n"
    ),
    "Hedge.md": (
        "# Hedge\n\nHornbeam keeps its brown leaves all winter and hides the road from us. Cut it "
        "in August, when the young birds have left, as [[Tools]] explains in a line.\n"
    ),
    "Pond.md": (
        "# Pond\n\nNewts arrived by themselves in the second year. Keep one side shallow for the "
        "hedgehogs, and leave the duckweed to those who know [[Watering]] by heart.\n"
    ),
    "Seeds.md": (
        "# Seeds\n\nOnions last two years, beans four, cucumbers nearly ten in a dry tin. Write "
        "the year on the packet, and test old ones on wet paper beside [[Tomatoes]].\n"
    ),
    "堆肥.md": (
        "# 堆肥製作\n\n廚餘和枯葉在一年之內變成肥沃的黑土。\n\n"
        "堆肥需要空氣和水分才能保持適當的溫度。\n\n## 翻堆的方法\n\n"
        "每兩個星期用叉子把堆肥翻動一次就足夠了。\n"
    ),
    "茶園.md": "# 高山茶園\n\n山上的茶園在清晨常常被濃霧籠罩著。\n\n"
    "採茶的工人在日出之前就開始一天的工作。\n",
}
