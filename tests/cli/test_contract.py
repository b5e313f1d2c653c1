"""The program keeps the contract: its commands, and the options of each."""

from __future__ import annotations

import pytest
from test_commands import PROGRAM, options

# The commands and options that users, scripts and editors can rely on; more may be added.
CONTRACT = {
    "index": "--tier --no-vectors --rebuild --model --offline --json",
    "search": "--vault -n --limit --profile --set --rerank --no-rerank --also --hypothesis --budget"
    " --per-note --passages --sections --neighbours --explain --require-fresh -0 --format --json",
    "watch": "--daemon --stop --status",
    "status": "--json",
    "doctor": "--json",
    "related": "--json",
    "read": "--heading --lines --budget --json",
    "list": "--json",
    "open": "",
    "links": "--json",
    "eval": "--profiles --ablate --json",
    "tune": "--dry-run --revert",
    "mcp": "--vault --http --no-resident",
    "mcp install": "--print --yes",
    "models list": "--json",
    "models pull": "-q",
    "models verify": "-q",
    "models path": "",
    "config init": "-q",
    "config show": "--json",
    "config check": "-q",
    "vaults list": "--json",
    "vaults remove": "--keep",
    "vaults default": "",
    "forget": "--json",
    "purge": "--yes",
}


def test_the_program_has_the_commands_of_the_contract_and_no_others():
    assert set(PROGRAM) == set(CONTRACT)


@pytest.mark.parametrize("name", CONTRACT)
def test_a_command_has_the_options_of_the_contract(name):
    assert set(CONTRACT[name].split()) <= options(PROGRAM[name])
