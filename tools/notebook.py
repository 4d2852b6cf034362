"""Write docs/guide/tutorial.ipynb with what its cells give; it needs nothing of Jupyter.

    python tools/notebook.py

tests/house/test_docs.py runs the cells, and fails where they give something else.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any, Final

NOTEBOOK: Final = Path(__file__).resolve().parent.parent / "docs" / "guide" / "tutorial.ipynb"


def main() -> None:
    """Run it and write it."""
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    NOTEBOOK.write_text(written(executed(notebook)), "utf-8")


def written(notebook: dict[str, Any]) -> str:
    """The notebook as a file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with fresh outputs; its cells run in one namespace, in this process."""
    namespace: dict[str, Any] = {"__name__": "tutorial"}
    cells, number = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            cells.append(cell)
            continue
        number += 1
        outputs = _outputs("".join(cell["source"]), namespace, number)
        cells.append(cell | {"execution_count": number, "outputs": outputs})
    return notebook | {"cells": cells}


def _outputs(source: str, namespace: dict[str, Any], number: int) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), namespace)  # noqa: S102
        value = None
        if isinstance(last, ast.Expr):
            code = compile(ast.Expression(last.value), f"cell {number}", "eval")
            value = eval(code, namespace)  # noqa: S307
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        outputs.append(
            {
                "data": {"text/plain": repr(value).splitlines(keepends=True)},
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return outputs


if __name__ == "__main__":
    main()
