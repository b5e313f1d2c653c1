"""Scripts: in which writing a query is, for those that an analyzer may not know how to cut."""

from __future__ import annotations

import re

_SCRIPTS = {
    "Japanese": re.compile(r"[\u3040-\u30ff]"),
    "Korean": re.compile(r"[\uac00-\ud7af]"),
    "Chinese": re.compile(r"[\u3400-\u9fff\uf900-\ufaff]"),
    "Cyrillic": re.compile(r"[\u0400-\u04ff]"),
    "Greek": re.compile(r"[\u0370-\u03ff]{2}"),  # one letter is a formula
    "Arabic": re.compile(r"[\u0600-\u06ff]"),
    "Hebrew": re.compile(r"[\u0590-\u05ff]"),
    "Thai": re.compile(r"[\u0e00-\u0e7f]"),
    "Devanagari": re.compile(r"[\u0900-\u097f]"),
}


def of(text: str) -> list[str]:
    """The scripts of a text beside Latin; Chinese characters in Japanese are Japanese."""
    found = [name for name, letters in _SCRIPTS.items() if letters.search(text)]
    return [name for name in found if name != "Chinese" or "Japanese" not in found]
