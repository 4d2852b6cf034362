"""Types of what Numba hands to an intrinsic while it compiles; import them under TYPE_CHECKING."""

from __future__ import annotations

from typing import TypeAlias

from llvmlite.ir import IRBuilder
from llvmlite.ir import Value as _Value
from numba.core.base import BaseContext
from numba.core.types import Type as _Type
from numba.core.typing import templates
from numba.core.typing.context import BaseContext as _TypingContext

Builder: TypeAlias = IRBuilder
Context: TypeAlias = BaseContext
Signature: TypeAlias = templates.Signature
Type: TypeAlias = _Type
Typing: TypeAlias = _TypingContext
Values: TypeAlias = list[_Value]
