"""The house: who may import whom, and no circle; docs/design/house.md draws it."""

from __future__ import annotations

import ast
import inspect
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import neardup as nd
from suite import ONCE, TESTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PACKAGE = Path(inspect.getfile(nd)).parent
BASE = {"errors", "runtime", "runtime.types"}

# Each room, shelf or file with rules of its own, and what it may import besides itself. On both
# sides the longest name that a module begins with counts: a shelf is not part of its room here.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "kernels.array_types": set(),
    "kernels.folders": set(),
    "kernels": {"kernels.array_types", "kernels.folders"},
    "kernels.contamination": {"kernels.array_types", "kernels", "kernels.features"},
    "kernels.contamination_passages": {"kernels", "kernels.contamination", "kernels.features"},
    "kernels.documents": {"kernels.array_types", "kernels", "kernels.features"},
    "kernels.features": {"kernels.array_types", "kernels"},
    "kernels.fingerprinting": {"kernels.array_types", "kernels", "kernels.features"},
    "kernels.hamming": {"kernels.array_types", "kernels"},
    "kernels.similarity": {"kernels.array_types", "kernels", "kernels.fingerprinting"},
    "kernels.index": {"kernels.array_types", "kernels", "kernels.features", "kernels.similarity"},
    "kernels.paths": {"kernels.array_types", "kernels", "kernels.similarity"},
    "runtime": {"errors"},
    "runtime.types": {"kernels.array_types"},
    "documents.files": BASE | {"kernels.documents"},
    "documents": BASE | {"documents.files", "documents.markup"},
    "documents.markup": {"errors"},
    "documents.formats": BASE
    | {"documents", "documents.files", "documents.markup", "kernels.documents"},
    "features": BASE | {"kernels.features"},
    "fingerprinting.majority": {"errors", "features"},
    "fingerprinting.md5_windows": {"kernels.fingerprinting"},
    "fingerprinting.values": BASE,
    "fingerprinting.libraries": BASE
    | {"features", "fingerprinting.majority", "fingerprinting.md5_windows", "kernels.features"},
    "fingerprinting": BASE
    | {"documents.markup", "features", "fingerprinting.libraries", "fingerprinting.majority"}
    | {"fingerprinting.values", "kernels.features", "kernels.fingerprinting"},
    "fingerprinting.explanation": BASE
    | {"documents.markup", "features", "fingerprinting", "fingerprinting.libraries"}
    | {"fingerprinting.majority", "fingerprinting.values", "similarity"},
    "fingerprinting.question": BASE | {"fingerprinting", "similarity"},
    "hamming.plans": BASE,
    "hamming.join": BASE | {"hamming.plans", "kernels", "kernels.hamming"},
    "hamming.search": BASE
    | {"fingerprinting.values", "hamming.join", "hamming.plans", "kernels", "kernels.hamming"},
    "hamming.spilled": BASE
    | {"fingerprinting", "fingerprinting.values", "hamming.join", "hamming.plans"}
    | {"kernels", "kernels.hamming"},
    "hamming": BASE
    | {"fingerprinting.values", "hamming.join", "hamming.plans", "hamming.search"}
    | {"hamming.spilled", "kernels", "kernels.paths"},
    "similarity": BASE | {"kernels", "kernels.similarity", "kernels.paths"},
    "index": BASE
    | {"documents.markup", "fingerprinting", "fingerprinting.question", "fingerprinting.values"}
    | {
        "hamming.plans",
        "hamming.search",
        "kernels.hamming",
        "kernels.index",
        "kernels.similarity",
        "similarity",
    },
    "index.durable": BASE
    | {"fingerprinting", "fingerprinting.question", "fingerprinting.values", "index"},
    "contamination": BASE
    | {"features", "fingerprinting", "kernels.contamination", "kernels.contamination_passages"}
    | {"kernels.features"},
    "compat": BASE
    | {"features", "fingerprinting", "fingerprinting.libraries", "fingerprinting.majority"}
    | {"fingerprinting.md5_windows", "fingerprinting.values", "kernels.fingerprinting"},
    "pipeline.report": BASE,
    "pipeline.run": BASE
    | {"documents", "documents.files", "features", "fingerprinting", "fingerprinting.values"}
    | {"client", "fingerprinting.question"}
    | {"hamming", "hamming.plans", "index", "index.durable", "similarity"},
    "pipeline.evidence": BASE
    | {"documents", "fingerprinting", "fingerprinting.explanation", "fingerprinting.values"}
    | {"pipeline.report", "pipeline.run", "similarity"},
    "pipeline.calibration": BASE
    | {
        "documents",
        "features",
        "fingerprinting",
        "fingerprinting.question",
        "fingerprinting.values",
        "hamming",
        "hamming.plans",
    }
    | {"pipeline.evidence", "pipeline.report", "pipeline.run", "similarity"},
    "pipeline.evaluation": BASE
    | {"documents", "fingerprinting", "fingerprinting.values", "hamming"}
    | {"pipeline.evidence", "pipeline.report", "pipeline.run", "similarity"},
    "pipeline.judgement": BASE
    | {"documents", "fingerprinting", "fingerprinting.question", "hamming", "pipeline.calibration"}
    | {"pipeline.evidence", "pipeline.report", "pipeline.run", "similarity"},
    "pipeline": BASE
    | {
        "contamination",
        "documents",
        "documents.files",
        "documents.formats",
        "documents.markup",
        "features",
        "fingerprinting",
    }
    | {"fingerprinting.question", "fingerprinting.values"}
    | {"hamming", "hamming.plans", "hamming.search", "hamming.spilled", "index", "index.durable"}
    | {"fingerprinting.explanation"}
    | {"pipeline.evidence", "pipeline.judgement", "pipeline.report", "pipeline.run", "similarity"},
    "pipeline.compilation": BASE
    | {"documents", "features", "fingerprinting", "fingerprinting.question", "hamming"}
    | {"hamming.join", "hamming.spilled", "index", "index.durable", "similarity"}
    | {"pipeline", "pipeline.calibration", "pipeline.run"},
    "spark": BASE
    | {"fingerprinting.question"}
    | {"documents", "documents.files", "documents.formats", "documents.markup", "features"}
    | {"contamination", "fingerprinting", "fingerprinting.values", "hamming", "index.durable"}
    | {"kernels", "kernels.index", "pipeline", "pipeline.run", "similarity"},
    "integrations": BASE
    | {"client", "features", "fingerprinting", "fingerprinting.question", "index", "index.durable"}
    | {"pipeline"},
    "service": BASE
    | {"fingerprinting", "fingerprinting.explanation", "index", "pipeline.evidence"}
    | {"pipeline.judgement", "pipeline.report"},
    "client": BASE,
    "cli": BASE
    | {
        "contamination",
        "documents",
        "documents.files",
        "features",
        "fingerprinting",
        "fingerprinting.explanation",
    }
    | {"fingerprinting.question", "hamming", "hamming.plans", "index", "kernels.folders"}
    | {"pipeline", "pipeline.calibration", "pipeline.compilation"}
    | {"pipeline.evaluation", "pipeline.evidence", "pipeline.judgement", "pipeline.run", "service"}
    | {"spark"},
    "__main__": {"cli", "runtime"},
    "__init__": BASE
    | {
        "documents.markup",
        "features",
        "fingerprinting",
        "fingerprinting.explanation",
        "fingerprinting.question",
    }
    | {"fingerprinting.majority", "fingerprinting.values", "hamming", "hamming.search"}
    | {"index", "index.durable", "pipeline"},
}


def modules(package: Path) -> dict[str, Path]:
    """Every module of a package by its dotted name; "__init__" is the package itself."""
    result = {}
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        result[name or "__init__"] = file
    return result


def imported(file: Path, known: Iterable[str]) -> Iterator[str]:
    """Every module of ours that a file imports, in functions and under TYPE_CHECKING too."""
    names = set(known)
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            dotted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            dotted = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            dotted = []
        for each in dotted:
            top, _, name = each.partition(".")
            if top == "neardup":
                yield name if name in names else name.rpartition(".")[0] or "__init__"


def arrows(package: Path) -> dict[str, set[str]]:
    """Who imports whom, module by module; what a package lists of its own files is not an arrow."""
    files = modules(package)
    return {name: set(imported(file, files)) - {name} for name, file in files.items()}


def room_of(module: str) -> str | None:
    """The room or shelf with rules of its own that a module lies in."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if name in ALLOWED), None)


def wrong_ways(graph: dict[str, set[str]]) -> list[str]:
    """Imports that the table does not allow; the face of a room may import the whole room."""
    result = []
    for module, targets in graph.items():
        room = room_of(module)
        for target in sorted(targets):
            inside = target.startswith(f"{module}.") and module != "__init__"
            allowed = ALLOWED.get(room or "", set()) | {room}
            if not inside and room_of(target) not in allowed:
                result.append(f"{module} -> {target}")
    return result


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Sets of two or more modules of which each reaches every other."""
    reach: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            for target in graph.get(waiting.pop(), set()) - seen:
                seen.add(target)
                waiting.append(target)
        reach[start] = seen
    rings = {
        tuple(sorted(x for x in reach[start] if start in reach.get(x, set())))
        for start in graph
        if start in reach[start]
    }
    return [list(ring) for ring in sorted(rings) if len(ring) > 1]


def test_every_module_has_a_room() -> None:
    assert [name for name in modules(PACKAGE) if room_of(name) is None] == []


def test_what_runs_with_the_jit_only_is_there() -> None:
    assert [each for each in ONCE if not (TESTS / each).exists()] == []


def test_every_property_takes_more_examples_in_the_long_form() -> None:
    """A number comes from `suite.examples`, so `make property-rounds` multiplies it."""
    fixed = re.compile(r"max_examples=\d+[,)]")
    assert [x.name for x in TESTS.rglob("*.py") if fixed.search(x.read_text("utf8"))] == []


def test_the_table_itself_has_no_circle() -> None:
    assert circles(ALLOWED) == []


def test_every_import_goes_down() -> None:
    assert wrong_ways(arrows(PACKAGE)) == []


PLANTED = {
    "hamming/join/join_engine.py": "def f():\n    from neardup.hamming.all_pairs import pairs\n",
    "features/text.py": "if TYPE_CHECKING:\n    from neardup.fingerprinting.recipe import Recipe\n",
    "kernels/bits.py": "import neardup.errors\n",
    "documents/batch.py": "from neardup import features\n",
}


@pytest.mark.parametrize("file", PLANTED)
def test_a_planted_wrong_import_is_found(file: str, tmp_path: Path) -> None:
    copy = tmp_path / "neardup"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    with (copy / file).open("a") as source:
        source.write(f"\n{PLANTED[file]}")
    rows = wrong_ways(arrows(copy))
    assert [x.partition(" ")[0] for x in rows] == [file.removesuffix(".py").replace("/", ".")]


def test_a_planted_circle_is_found(tmp_path: Path) -> None:
    copy = tmp_path / "neardup"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    with (copy / "documents/files/problems.py").open("a") as source:
        source.write("\ndef f():\n    import neardup.documents.files.finding\n")
    (circle,) = circles(arrows(copy))
    assert {"documents.files.finding", "documents.files.problems"} <= set(circle)


def test_no_files_know_each_other_in_a_circle() -> None:
    assert circles(arrows(PACKAGE)) == []


def test_no_room_is_called_like_a_public_name() -> None:
    rooms = {x.stem for x in PACKAGE.iterdir()}
    assert rooms & set(nd.__all__) == set()


BESIDE_ROOMS = {
    "attack": "damaged, hostile and endless input goes through all rooms",
    "house": "the house itself",
}


def test_every_folder_of_tests_is_a_room_or_says_why() -> None:
    rooms = {x.parent.name for x in PACKAGE.glob("*/__init__.py")}
    folders = {x.parent.name for x in TESTS.glob("*/test_*.py")}
    assert folders - set(BESIDE_ROOMS) <= rooms
    assert not rooms & set(BESIDE_ROOMS)
    assert rooms - folders <= {"runtime"}, "each room has tests; the floor's are in those above it"
