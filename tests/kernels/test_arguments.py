"""Kernels that can be read: few arguments, in groups."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import TYPE_CHECKING

import neardup as nd

if TYPE_CHECKING:
    from collections.abc import Iterator

KERNELS = Path(inspect.getfile(nd)).parent / "kernels"
MOST = 8

# Called from Python with more: what stands against a group of them.
MORE = {
    "walk_marks": "CSV and JSON: nearly all are arrays that one flat loop reads and writes",
    "project_sparse": "the arguments of project_dense, and where each value stands",
    "search_windows": "called for one query, where groups cost microseconds (see `view_of`)",
}


def called_by_steps(package: Path) -> set[str]:
    """What files outside the kernels import from them."""
    found = set()
    for file in set(package.rglob("*.py")) - set((package / "kernels").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and "kernels" in str(node.module):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "kernels":
                found.add(node.attr)
    return found


def with_more(folder: Path, called: set[str]) -> Iterator[str]:
    """Kernels that take more than MOST arguments, of those that are called from Python."""
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            is_called = isinstance(node, ast.FunctionDef) and node.name in called
            if is_called and node.decorator_list and len(node.args.args) > MOST:
                yield node.name


def test_no_kernel_takes_more_than_eight_arguments_but_those_that_say_why() -> None:
    assert set(with_more(KERNELS, called_by_steps(KERNELS.parent))) == set(MORE)


def test_a_kernel_of_many_arguments_is_found(tmp_path: Path) -> None:
    names = ", ".join("abcdefghi")
    planted = f"@kernel\ndef crowded({names}):\n    pass\n\n\n@inner\ndef own({names}):\n    pass\n"
    (tmp_path / "planted.py").write_text(planted)
    assert list(with_more(tmp_path, {"crowded"})) == ["crowded"]
