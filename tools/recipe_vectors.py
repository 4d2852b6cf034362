"""Write docs/reference/vectors.json, and its table in recipe.md beside it, with the oracle.

    python tools/recipe_vectors.py

The oracle is tests/naive.py. tests/house/test_docs.py checks both against it, the package and the
program of that page.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
REFERENCE: Final = ROOT / "docs" / "reference"
VECTORS: Final = REFERENCE / "vectors.json"
RECIPE_PAGE: Final = REFERENCE / "recipe.md"
BEGIN: Final = "<!-- vectors: written by tools/recipe_vectors.py -->\n"
END: Final = "<!-- end of vectors -->"

RECIPES: Final[dict[str, dict[str, Any]]] = {
    "A": {},
    "B": {"ngram": 1, "weight": "count", "tie": "one"},
    "C": {"tokens": "chars", "ngram": 5, "weight": "log", "seed": 42},
    "D": {"normalize": "none", "casefold": False, "ngram": 2},
    "E": {"ngram": 2, "bits": 100},
}
TEXTS: Final = [
    "The quick brown fox jumps over the lazy dog",
    "the QUICK brown fox -- jumps over the lazy dog!",
    "one",
    "to be or not to be, to be or not to be",
    "",
    " \t\n!?",
    "snake_case x2 3.14 it's",
    "Stra\u00dfe STRASSE \ufb01ne \u2460",
    "e\u0301te\u0301 \u00e9t\u00e9 \u0130stanbul",
    "\u4f60\u597d\u4e16\u754c, \u3053\u3093\u306b\u3061\u306f \u30ab\u3099\uff76\uff9e",
    "\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22\u0e44\u0e21\u0e48\u0e21\u0e35",
    "\u043c\u02bc\u044f\u0442\u0430 \ud55c\uad6d\uc5b4 \u1112\u1161\u11ab",
    "soft\u00adhyphen zero\u200bwidth joi\u200dner \ufeff",
    "lone \ud800 surrogate \U0001f600 \U0002a6df\U0002a6e0",
    "a\u00a0b\u2003c  d\u0085e",
]


def main() -> None:
    """Write both."""
    vectors = compute(load_oracle())
    VECTORS.write_text(json.dumps(vectors, indent=1) + "\n", "ascii")
    page = RECIPE_PAGE.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    RECIPE_PAGE.write_text(before + BEGIN + table(vectors) + END + after, "utf-8")


def load_oracle() -> Any:
    """Import tests/naive.py, which is not a package."""
    path = ROOT / "tests" / "naive.py"
    spec = importlib.util.spec_from_file_location("naive_for_vectors", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def compute(oracle: Any) -> dict[str, Any]:
    """Recipes in full, and each text with its fingerprints in hexadecimal, null where empty."""
    recipes = {name: oracle.Recipe(**fields) for name, fields in RECIPES.items()}
    return {
        "unicode": oracle.UNICODE_VERSION,
        "recipes": {name: _fields(recipe) for name, recipe in recipes.items()},
        "vectors": [
            {"text": text} | {name: _hex(oracle, text, r) for name, r in recipes.items()}
            for text in TEXTS
        ],
    }


def _fields(recipe: Any) -> dict[str, Any]:
    return {name: x for name, x in dataclasses.asdict(recipe).items() if x is not None}


def _hex(oracle: Any, text: str, recipe: Any) -> str | None:
    value = oracle.fingerprint(text, recipe)
    return None if value is None else f"{value:0{-(-recipe.bits // 4)}x}"


def table(vectors: dict[str, Any]) -> str:
    """The recipes and the fingerprints as Markdown."""
    lines = ["| recipe | differs from the default in |", "|---|---|"]
    for name, fields in RECIPES.items():
        messages = ", ".join(f"{key}={value!r}" for key, value in fields.items()) or "nothing"
        lines.append(f"| {name} | `{messages}` |")
    lines += ["", "| text | A | B | C | D | E |", "|---|---|---|---|---|---|"]
    for row in vectors["vectors"]:
        cells = [f"`{row[name]}`" if row[name] else "none" for name in RECIPES]
        lines.append(" | ".join([f"| `{json.dumps(row['text'])}`", *cells]) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
