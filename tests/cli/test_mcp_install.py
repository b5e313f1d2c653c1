"""ragvault mcp install: one entry more, and everything else in the file as it was."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vault_kit import ragvault

from ragvault.cli import mcp
from ragvault.errors import UsageError

PLACES = {
    "claude-code": ".claude.json",
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "cursor": ".cursor/mcp.json",
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    return tmp_path


@pytest.mark.parametrize("client", mcp.CLIENTS)
def test_a_client_gets_an_entry_that_starts_the_server(home, client):
    said = ragvault("mcp", "install", client, "--vault", "notes", "--yes")

    assert said.code == 0, said.err
    assert '"ragvault"' in said.out
    file = home / PLACES[client]
    entry = json.loads(file.read_text("utf-8"))["mcpServers"]["ragvault"]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-2:] == ["mcp", "--vault=notes"]
    assert entry["env"]["RAGVAULT_HOME"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = ragvault("mcp", "install", client, "--vault", "notes", "--yes")
    assert (again.code, again.out) == (0, "")
    assert "has this entry already" in again.err


@given(st.dictionaries(st.text(), VALUES), st.dictionaries(st.text(), VALUES), st.integers(1, 4))
def test_everything_else_in_the_file_stays(tmp_path_factory, others, servers, indent):
    home = tmp_path_factory.mktemp("home")
    others.pop("mcpServers", None)
    before = {**others, "mcpServers": servers}
    (home / ".claude.json").write_text(json.dumps(before, indent=indent), "utf-8")

    found = mcp.change("claude-code", {"command": "x"}, {"HOME": str(home)})
    mcp.write(found)

    after = json.loads((home / ".claude.json").read_text("utf-8"))
    assert after["mcpServers"].pop("ragvault") == {"type": "stdio", "command": "x"}
    before["mcpServers"].pop("ragvault", None)
    assert after == before
    assert [key for key in after if key in others] == list(others)


def test_the_change_is_shown_and_nothing_is_written_without_an_answer(home):
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{\n    "mcpServers": {\n        "other": {"command": "a"}\n    }\n}\n')
    before = file.read_text()

    said = ragvault("mcp", "install", "cursor")

    assert said.code == 2
    assert "add --yes, or use --print" in said.err
    assert '+        "ragvault": {' in said.out
    assert file.read_text() == before


@pytest.mark.parametrize("broken", ["{ // comment\n}", "[]", '{"mcpServers": 3}', "{", "\ud800"])
def test_a_file_that_is_not_plain_json_is_never_changed(home, broken):
    file = home / ".claude.json"
    file.write_bytes(broken.encode("utf-8", "surrogatepass"))
    before = file.read_bytes()

    said = ragvault("mcp", "install", "claude-code", "--yes")

    assert said.code == 2
    assert "ragvault mcp install --print" in said.err
    assert file.read_bytes() == before


def test_a_link_to_the_settings_stays_a_link_and_its_mode_is_kept(home):
    real = home / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o644)
    (home / ".claude.json").symlink_to(real)

    assert ragvault("mcp", "install", "claude-code", "--yes").code == 0
    assert (home / ".claude.json").is_symlink()
    assert "ragvault" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o644


def test_print_is_for_any_client_and_changes_nothing(home):
    said = ragvault("mcp", "install", "--print")
    assert json.loads(said.out)["mcpServers"]["ragvault"]["args"][-1] == "mcp"
    assert list(home.iterdir()) == []
    assert "claude-code, claude-desktop, cursor" in ragvault("mcp", "install").err
    with pytest.raises(UsageError, match="no client is called emacs"):
        mcp.settings_file("emacs")
