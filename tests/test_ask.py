"""A search is the same whoever answers it: the command, or another process on its behalf."""

from __future__ import annotations

import io
import json
import re
import shutil
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from ragvault.cli import render, reply, start
from ragvault.cli.around import Surroundings, surroundings
from ragvault.cli.ask import answer
from ragvault.cli.main import main
from ragvault.cli.reply import Reply
from ragvault.cli.search import Format, parse
from ragvault.vault import Vault

SAMPLE = Path(__file__).parent.parent / "sample_vault"


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    root = tmp_path_factory.mktemp("ask") / "bread"
    shutil.copytree(SAMPLE, root)
    opened = Vault.open(root)
    opened.index("keyword")
    return opened


def typed(*args: str) -> Reply:
    """What the command itself writes."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["search", *args])
    return Reply(out.getvalue(), tuple(err.getvalue().splitlines()), code)


def timeless(reply: Reply) -> Reply:
    """Without the times that were measured."""
    told = re.sub(r'("(took_ms|start|end)": )[0-9.e-]+', r"\1 0", reply.out)
    return reply._replace(out=re.sub(r" *[0-9.]+ to +[0-9.]+ ms", "0 ms", told))


@pytest.mark.parametrize("format_", [each.value for each in Format])
@pytest.mark.parametrize("query", ["gluten", "qqqzzz"])
def test_an_index_kept_open_gives_the_bytes_of_the_command(vault, format_, query):
    where = ["--vault", str(vault.root)]
    args = [query, *where, "--format", format_, "--explain"]
    around = surroundings()
    with vault.reading() as kept:
        replies = [answer(parse(["search", *args], around), around, lambda _: nullcontext(kept))
                   for _ in range(2)]  # fmt: skip
    assert timeless(replies[0]) == timeless(replies[1]) == timeless(typed(*args))


@pytest.mark.parametrize(
    "args",
    [["rye", "--vault", "nowhere"], ["   "], ["rye", "--set", "fuse.k=x", "--set", "no.such=1"]],
    ids=["no vault", "no words", "two wrong settings"],
)
def test_an_error_is_the_same_lines_and_code(vault, monkeypatch, args):
    monkeypatch.chdir(vault.root)
    around = surroundings()
    reply = answer(parse(["search", *args], around), around)
    assert reply == typed(*args)
    assert reply.code == 2
    assert reply.err


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["status"],
        ["search"],
        ["search", "--help"],
        ["search", "rye", "-h"],
        ["search", "rye", "--no-such-option"],
        ["search", "rye", "-n", "0"],
        ["-q", "search", "rye"],
    ],
    ids=" ".join,
)
def test_what_is_not_a_plain_search_is_left_to_the_process_it_was_typed_in(capfd, args):
    assert parse(args, surroundings()) is None
    assert capfd.readouterr() == ("", "")


def test_parsing_for_another_leaves_this_process_as_loud_as_it_was():
    assert parse(["search", "rye", "-q"], surroundings()).quiet
    assert not render.is_quiet()


def test_the_folder_and_the_variables_are_those_of_the_one_who_asks(vault, tmp_path):
    here = surroundings()
    inside = Surroundings(str(vault.root / "Science"), here.environ, here.now, here.zone)
    other = inside._replace(environ={"RAGVAULT_HOME": str(tmp_path)})
    ask = parse(["search", "gluten", "--json"], inside)
    assert json.loads(answer(ask, inside).out)["vaults"] == [vault.name]
    assert answer(ask, other).code == 2


def test_an_answer_of_the_watcher_that_cannot_be_written_is_a_line_and_exit_4(monkeypatch, capsys):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(reply, "write", full)

    assert start._written({"out": "x", "err": [], "code": 0}) == 4
    assert capsys.readouterr().err.startswith("ragvault: unexpected OSError: [Errno 28] No space")
