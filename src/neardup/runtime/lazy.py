"""Lazy names of a package, which are loaded at their first use."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as `typing` has it, which takes longer to load than this
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

__all__ = ["lazily"]


def lazily(package: str, homes: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """A module-level __getattr__ (PEP 562) that loads names at their first use.

    Args:
        package: The package's `__name__`.
        homes: The names that each module, named from the package on, has.

    Example:
        >>> lazily("neardup", {"errors": ("DataError",)})("DataError").__name__
        'DataError'
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        import importlib

        value = getattr(importlib.import_module(f"{package}.{home_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
