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

    def invoke(self, ctx: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DoubtfulResultWarning)
            return super().invoke(ctx)


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _untyped(super().get_params(ctx))


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
