"""Fences: what the languages of code blocks are called, and which names mean the same.

    language    one name for a language, however a fence calls it
    languages   all names of the language that a name means, the usual one first

Fences are labelled by habit, so the filter `lang:` and the code index must agree on the habits.
"""

from __future__ import annotations

LANGUAGES = tuple(
    tuple(names.split())
    for names in (
        "python py python3 py3 ipython",
        "javascript js mjs cjs node jsx",
        "typescript ts tsx",
        "bash sh shell zsh console shell-session",
        "powershell ps1 pwsh ps",
        "c++ cpp cxx cc hpp",
        "c# csharp cs",
        "f# fsharp fs",
        "go golang",
        "rust rs",
        "ruby rb",
        "kotlin kt",
        "haskell hs",
        "yaml yml",
        "markdown md",
        "latex tex",
        "html htm xhtml",
        "dockerfile docker",
        "makefile make mk",
        "objective-c objectivec objc",
        "perl pl",
        "r rlang",
        "text txt plain plaintext",
    )
)
_BY_NAME = {name: names for names in LANGUAGES for name in names}


def languages(name: str) -> tuple[str, ...]:
    """All names of the language that a name means, the usual one first."""
    small = name.strip().casefold()
    return _BY_NAME.get(small, (small,))


def language(name: str) -> str:
    """The usual name of a language."""
    return languages(name)[0]
