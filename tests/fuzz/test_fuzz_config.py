"""Any .ragvault.toml is valid settings, or one ConfigError with a message and a fix."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given

from ragvault.config.load import MAX_BYTES, VAULT_FILE, load_settings
from ragvault.config.schema import literal, parse_toml
from ragvault.config.settings import Config
from ragvault.errors import ConfigError
from tests.fuzz_kit import awkward_texts, time_limit

pytestmark = pytest.mark.slow

SEEDS = (
    '[walk]\nexclude = ["a/*", "b"]\ngitignore = false\n\n[chunk]\nparent_max = 3000\n',
    '[search]\nprofile = "default"\n[keyword]\nengine = "whoosh"\nboosts.title = 3.5\n',
    'query = { expand = { terms = 3 } }\nlinks.order = "label-first"\n[graph]\n# comment\n',
    "chunk = [[1, 2], [3]]\n[[walk]]\na = 1979-05-27T07:32:00-08:00\nb = '''x\ny'''\nc = 0xff\n",
    '"quoted key"."a.b" = """\\u00e9 \\\n  z"""\n[models]\nembedder = ""\n[paths]\ndata = "/tmp"\n',
)
PIECES = (
    *(
        "[",
        "]",
        "[[",
        "]]",
        "{",
        "}",
        "=",
        ".",
        ",",
        "#",
        "\n",
        '"',
        "'",
        '"""',
        "'''",
        "\\",
        "\\u12",
    ),
    *(
        "walk",
        "chunk",
        "search",
        "query",
        "fuse",
        "[walk]\n",
        "a = 1\n",
        "overlap = ",
        "exclude = ",
    ),
    *(
        "true",
        "inf",
        "nan",
        "-0",
        "1e400",
        "9" * 30,
        "0x",
        "1_000",
        "1979-05-27",
        "07:32:00",
        "a.b.c = ",
    ),
)


@given(awkward_texts(SEEDS, PIECES))
@example("a = " + "[" * 5_000)
@example("a = " + "{a = " * 5_000)
@example("a." * 5_000 + "b = 1")
@example("[" + "a." * 19 + "b]\n" * 900)
@example("[chunk]\noverlap = " + "9" * 5_000)
def test_config(text):
    data = text.encode("utf-8", "surrogateescape" if "\ud800" not in text else "replace")[
        : MAX_BYTES["vault file"]
    ]
    with TemporaryDirectory() as folder:
        vault = Path(folder)
        (vault / VAULT_FILE).write_bytes(data)
        with time_limit():
            try:
                loaded = load_settings(vault, environ={"RAGVAULT_HOME": folder})
            except ConfigError as error:
                refused = error
            else:
                refused = None

    if refused:
        assert str(refused)
        assert refused.fix
        return
    assert isinstance(loaded.config, Config)
    assert all(VAULT_FILE in loaded.origin[key] for key in loaded.chosen)


@given(awkward_texts(SEEDS, PIECES))
def test_toml(text):
    with time_limit():
        try:
            value = parse_toml(text)
        except ValueError:
            return
        written = literal(value)

    assert literal(parse_toml(f"value = {written}")["value"]) == written
