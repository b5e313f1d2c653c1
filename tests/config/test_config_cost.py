"""Reading a vault's settings takes time in proportion to their length, whatever is in them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ragvault.config.load import MAX_BYTES, VAULT_FILE, load_settings
from ragvault.errors import ConfigError
from tests.cost_kit import cpu_seconds

pytestmark = pytest.mark.slow

LONGEST = MAX_BYTES["vault file"] - 1_000
SHAPES: dict[str, Callable[[int], str]] = {
    "comments": lambda n: "# a\n" * (n // 4),
    "blank lines": lambda n: "\n" * n,
    "unknown keys": lambda n: "".join(f"key{i} = 1\n" for i in range(n // 13)),
    "unknown tables": lambda n: "".join(f"[table{i}]\n" for i in range(n // 12)),
    "keys of one table": lambda n: "[chunk]\n" + "".join(f"key{i} = 1\n" for i in range(n // 13)),
    "dotted keys": lambda n: "".join(f"a{i}.b.c.d = 1\n" for i in range(n // 17)),
    "deep dotted keys": lambda n: "".join(f"k{i}{'.a' * 18} = 1\n" for i in range(n // 46)),
    "a key of many parts": lambda n: "a." * (n // 2) + "b = 1\n",
    "a header of many parts": lambda n: "[" + "a." * (n // 2) + "b]\n",
    "quoted keys": lambda n: "".join(f'"a {i}" = 1\n' for i in range(n // 13)),
    "a list": lambda n: "[walk]\nexclude = [" + '"a", ' * (n // 5) + "]\n",
    "a list on many lines": lambda n: "[walk]\nexclude = [\n" + '"a", # b\n' * (n // 9) + "]\n",
    "nested lists": lambda n: "a = " + "[" * n,
    "nested tables": lambda n: "a = " + "{a = " * (n // 5),
    "tables in a line": lambda n: "a = [" + "{b = 1}, " * (n // 9) + "]\n",
    "tables of a list": lambda n: "[[a]]\nb = 1\n" * (n // 12),
    "a long text": lambda n: 'a = "' + "b" * n + '"\n',
    "a text of many lines": lambda n: 'a = """' + "b\n" * (n // 2) + '"""\n',
    "escapes": lambda n: 'a = "' + "\\u00e9" * (n // 6) + '"\n',
    "a text that is never closed": lambda n: 'a = "' + "b" * n,
    "quotation marks": lambda n: 'a = "' * (n // 5),
    "a long number": lambda n: "a = " + "9" * n + "\n",
    "dots": lambda n: "." * n,
    "spaces": lambda n: "a" + " " * n + "= 1\n",
    "spaces between parts": lambda n: "a . " * (n // 4) + "b = 1\n",
    "words in a line": lambda n: "a " * (n // 2),
    "commas": lambda n: "a = [" + "," * n + "]\n",
}


def work(vault: Path) -> None:
    with suppress(ConfigError):
        load_settings(vault, environ={"RAGVAULT_HOME": str(vault)})


@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_file_is_at_most_three_times_the_work(tmp_path, shape):
    for size in (LONGEST // 2, LONGEST):
        vault = tmp_path / str(size)
        vault.mkdir()
        (vault / VAULT_FILE).write_text(SHAPES[shape](size)[:LONGEST], encoding="utf-8")
    small, large = tmp_path / str(LONGEST // 2), tmp_path / str(LONGEST)

    assert cpu_seconds(lambda: work(large)) <= 3 * cpu_seconds(lambda: work(small))
