"""Options that join a command's own from outside, and the one value that is made of them."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["join_options", "option", "takes"]


def option(name: str, kind: Any, default: object = None) -> inspect.Parameter:
    """A parameter of a command: an option of this type and default."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def takes(
    place: str, options: Sequence[inspect.Parameter], make: Callable[..., object]
) -> Callable[[Callable[..., None]], Any]:
    """Decorate a command: it takes options in the place of a parameter, which is made of them.

    Args:
        place: The parameter.
        options: They stand in the help where the parameter stands in the signature.
        make: Makes its value of the options, by their names.
    """

    def decorate(command: Callable[..., None]) -> Any:
        @functools.wraps(command)
        def run(**given: Any) -> None:
            values = {each.name: given.pop(each.name) for each in options}
            command(**given, **{place: make(**values)})

        return join_options(command, run, options, place)

    return decorate


def join_options(
    command: Callable[..., None],
    run: Callable[..., None],
    options: Sequence[inspect.Parameter],
    place: str | None = None,
) -> Any:
    """Give `run` the signature of a command, with options in the place of one or at its end."""
    hints = get_type_hints(command, localns={"Recipe": Any}, include_extras=True)
    parameters: list[inspect.Parameter] = []
    for name, own in inspect.signature(command).parameters.items():
        parameters += options if name == place else [option(name, hints[name], own.default)]
    if place is None:
        parameters += options
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run
