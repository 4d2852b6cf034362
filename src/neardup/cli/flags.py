"""Commands whose help shows a flag as a flag: without the `<bool>` of Typer since 0.29.

What is doubtful about a run is in its summary, so Python's own warning of it is left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from neardup.errors import DoubtfulResultWarning

__all__ = ["Commands"]

_Verb = TypeVar("_Verb", bound=Callable[..., Any])


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _untyped(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As Click's, where several values may follow an option that may be given several times."""
        several = {
            name
            for option in self.get_params(ctx)
            if getattr(option, "multiple", False)
            for name in option.opts
        }
        return super().parse_args(ctx, _each_named(args, several))

    def invoke(self, ctx: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DoubtfulResultWarning)
            return super().invoke(ctx)


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _untyped(super().get_params(ctx))


def _each_named(args: list[str], several: set[str]) -> list[str]:
    """Name an option before each of the values that follow it.

    Example:
        >>> _each_named(["in", "--against", "a", "b", "-o", "out"], {"--against"})
        ['in', '--against', 'a', '--against', 'b', '-o', 'out']
    """
    named: list[str] = []
    option, awaits = None, False
    for each in args:
        if each in several:
            option, awaits = each, True
        elif each.startswith("-") and each != "-" and not awaits:
            option = None
        elif option is not None and not awaits:
            named.append(option)
        else:
            awaits = False
        named.append(each)
    return named


def _untyped(options: list[Any]) -> list[Any]:
    for option in options:
        if getattr(option, "is_flag", False):
            option.metavar = ""
    return options


class Commands(typer.Typer):
    """A group of commands."""

    def __init__(self, **settings: Any) -> None:
        """As typer.Typer."""
        super().__init__(cls=_Group, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[_Verb], _Verb]:
        """As typer.Typer.command."""
        return super().command(name, cls=_Command, **settings)
