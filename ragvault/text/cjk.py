"""Scripts that put no space between words: Chinese, Japanese, Korean, Thai and their neighbours.

A run of such characters is looked up by its pairs: 黑豹队 by 黑豹 and 豹队. Pairs stand in for
words without a dictionary, and a phrase is a row of pairs. Single characters are indexed too, for
the queries that are one character long.
"""

from __future__ import annotations

import unicodedata

# Inside a character class. The middle dot of katakana (U+30FB) separates names and is left out.
UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e"  # Thai
    "\u0e81-\u0ece"  # Lao
    "\u1000-\u103f\u1050-\u109f"  # Burmese
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb"  # Korean
    "\u1780-\u17d3"  # Khmer
    "\u2e80-\u2fd5\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00020000-\U0003ffff"
    "\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
)


def characters(run: str) -> str:
    """The run in the form it is indexed in: half-width kana and ligatures made whole."""
    return unicodedata.normalize("NFKC", run)


def pairs(run: str) -> list[str]:
    """Its overlapping pairs; one character is its own pair."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]
