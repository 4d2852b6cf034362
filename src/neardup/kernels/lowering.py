"""What Numba hands to an intrinsic while it compiles; import the names under TYPE_CHECKING."""

from __future__ import annotations

from typing import TypeAlias

from llvmlite.ir import IRBuilder as Builder
from llvmlite.ir import Value
from numba.core.base import BaseContext as Context
from numba.core.types import Type
from numba.core.typing.context import BaseContext as Typing
from numba.core.typing.templates import Signature

__all__ = ["Builder", "Context", "Signature", "Type", "Typing", "Values"]

Values: TypeAlias = list[Value]
