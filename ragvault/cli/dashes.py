"""Dashes: a query may begin with a minus, as options do.

    ragvault search "-tag:inbox bread"      the query
    ragvault search -n5 -qv bread           options

An argument that begins with one dash and has not exactly the form of an option is the query: one
with a space in it, with a letter no option has, or with letters where -n has its number. What could
be both is an option; after `--` nothing is.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from typer.core import TyperCommand

from ragvault.errors import UsageError

HELP = {"-h": False, "--help": False}  # also where help is left to another process


class Queried(TyperCommand):
    """A command whose one argument is a query."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        takes_value = HELP | {
            name: not getattr(param, "is_flag", True)
            for param in self.get_params(ctx)
            for name in (*param.opts, *param.secondary_opts)
        }
        rest: list[str] = super().parse_args(
            ctx, args if ctx.resilient_parsing else sorted_out(args, takes_value)
        )
        return rest


def sorted_out(args: Sequence[str], takes_value: dict[str, bool]) -> list[str]:
    """The same arguments, with a query that begins with a dash behind `--`."""
    options, words = _apart(args, takes_value)
    dashed = [word for word in words if word.startswith("-")]
    if not dashed:
        return list(args)
    if len(words) > 1:
        meant = shlex.quote(" ".join(words))
        raise UsageError(
            f"{dashed[0]} is neither an option nor the query",
            fix=f"a query is one argument: ragvault search -- {meant}",
        )
    return [*options, "--", *words]


def _apart(args: Sequence[str], takes_value: dict[str, bool]) -> tuple[list[str], list[str]]:
    """Options with their values, and all else."""
    options: list[str] = []
    words: list[str] = []
    rest = iter(args)
    for arg in rest:
        if arg == "--":
            words += rest
        elif _is_option(arg, takes_value):
            options.append(arg)
            options += _value(arg, takes_value, rest)
        else:
            words.append(arg)
    return options, words


def _is_option(arg: str, takes_value: dict[str, bool]) -> bool:
    if arg.startswith("--"):  # one we do not have is a mistake, but for a sentence
        return arg.partition("=")[0] in takes_value or not any(map(str.isspace, arg))
    if len(arg) < 2 or not arg.startswith("-"):
        return False
    for at, letter in enumerate(arg[1:], 2):
        if f"-{letter}" not in takes_value:
            return False
        if takes_value[f"-{letter}"]:  # what follows is its value: a number, here
            return not any(map(str.isalpha, arg[at:]))
    return True


def _value(arg: str, takes_value: dict[str, bool], rest: Iterator[str]) -> list[str]:
    """The value of an option, where it is the next argument."""
    last = arg if arg.startswith("--") else f"-{arg[-1]}"
    if not takes_value.get(last):
        return []
    value = next(rest, None)
    return [] if value is None else [value]
