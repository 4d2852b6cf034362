"""Signatures of commands: parameters added by decorators, and flags that Typer lacks."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from neardup.errors import DoubtfulResultWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Command", "Commands", "join_options", "option", "takes"]


def option(name: str, kind: Any, default: object = None) -> inspect.Parameter:
    """A command parameter for an option of a type, with a default."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def takes(
    place: str, options: Sequence[inspect.Parameter], make: Callable[..., object]
) -> Callable[[Callable[..., None]], Any]:
    """Decorate a command: options replace one of its parameters, whose value is made of them.

    Args:
        place: The parameter.
        options: They stand in the help where the parameter stands in the signature.
        make: Makes its value of the options, by their names.
    """

    def decorate(command: Callable[..., None]) -> Any:
        @functools.wraps(command)
        def run(**arguments: Any) -> None:
            values = {each.name: arguments.pop(each.name) for each in options}
            command(**arguments, **{place: make(**values)})

        return join_options(command, run, options, place)

    return decorate


def join_options(
    command: Callable[..., None],
    run: Callable[..., None],
    options: Sequence[inspect.Parameter],
    place: str | None = None,
) -> Any:
    """Give `run` the signature of a command, with options in place of a parameter or at the end."""
    hints = get_type_hints(command, localns={"Recipe": Any, "Parts": Any}, include_extras=True)
    parameters: list[inspect.Parameter] = []
    for name, own in inspect.signature(command).parameters.items():
        parameters += options if name == place else [option(name, hints[name], own.default)]
    if place is None:
        parameters += options
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


_Verb = TypeVar("_Verb", bound=Callable[..., Any])


class Command(TyperCommand):
    """A command whose repeatable options take several values each."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters; a flag has no type to show."""
        return _untyped(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments as Click does; several values may follow a repeatable option."""
        options = self.get_params(ctx)
        several, flags = (
            {x for each in options if getattr(each, kind, False) for x in each.opts}
            for kind in ("multiple", "is_flag")
        )
        arguments = _each_named(args, several)
        # In `--against seen.index new.jsonl` what follows the first value is the input.
        return super().parse_args(ctx, arguments if _has_argument(arguments, flags) else list(args))

    def invoke(self, ctx: Any) -> Any:
        """Run the command; the command line tells of doubtful results in a way of its own."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DoubtfulResultWarning)
            return super().invoke(ctx)


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _untyped(super().get_params(ctx))


def _each_named(args: list[str], several: set[str]) -> list[str]:
    """Repeat an option's name before each of the values that follow it.

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


def _has_argument(args: list[str], flags: set[str]) -> bool:
    """Whether any word is neither an option nor an option's value.

    Example:
        >>> _has_argument(["--json", "-o", "out"], {"--json"})
        False
    """
    is_value = False
    for each in args:
        if is_value:
            is_value = False
        elif each.startswith("-") and each != "-":
            is_value = "=" not in each and each not in flags
        else:
            return True
    return False


def _untyped(options: list[Any]) -> list[Any]:
    for option in options:
        if getattr(option, "is_flag", False):
            option.metavar = ""
    return options


class Commands(typer.Typer):
    """A group of commands."""

    def __init__(self, **settings: Any) -> None:
        """Create a Typer application for a group of commands."""
        super().__init__(cls=_Group, **settings)

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = None, **settings: Any
    ) -> Callable[[_Verb], _Verb]:
        """Register a command, as typer.Typer.command does."""
        return super().command(name, cls=cls or Command, **settings)
