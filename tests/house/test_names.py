"""The public names and their examples, and where each library may be imported."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import neardup as nd
import neardup.spark
from suite import TESTS

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGE = Path(inspect.getfile(nd)).parent
FILES = sorted(PACKAGE.rglob("*.py"))
MODULES = sorted(x.name for x in pkgutil.walk_packages([str(PACKAGE)], "neardup."))


def imports(file: Path) -> set[str]:
    """Every module that a file imports anywhere, as a dotted name."""
    result: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            result.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            result.add(module)
            result.update(f"{module}.{alias.name}" for alias in node.names)
    return result


def is_of(module: str, *packages: str) -> bool:
    """Whether a dotted name is one of the packages or lies in one."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def layer(file: Path) -> str:
    """The file's place under src/neardup: "kernels", "cli", "pipeline"..."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def by_name(file: Path) -> str:
    return str(file.relative_to(PACKAGE))


@pytest.mark.parametrize("file", [x for x in FILES if layer(x) == "kernels"], ids=by_name)
def test_a_kernel_imports_only_numpy_numba_and_kernels(file: Path) -> None:
    allowed = ("numpy", "numba", "llvmlite", "neardup.kernels", *sys.stdlib_module_names)
    assert [x for x in imports(file) if not is_of(x, *allowed)] == []


@pytest.mark.parametrize("file", FILES, ids=by_name)
def test_each_library_is_imported_in_its_own_layer_only(file: Path) -> None:
    if layer(file) != "kernels":
        assert [x for x in imports(file) if is_of(x, "numba", "llvmlite")] == []
    if layer(file) not in {"cli", "__main__"}:
        assert [x for x in imports(file) if is_of(x, "typer", "rich", "neardup.cli")] == []


def test_the_oracle_imports_nothing_of_ours() -> None:
    assert [x for x in imports(TESTS / "naive.py") if is_of(x, "neardup")] == []


@pytest.mark.parametrize("module", ["neardup", *MODULES])
def test_every_name_that_a_module_lists_is_there_and_documented(module: str) -> None:
    loaded = importlib.import_module(module)
    listed = getattr(loaded, "__all__", [])
    assert list(listed) == sorted(set(listed), key=listed.index)
    for name in listed:
        value = getattr(loaded, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, f"{module}.{name} has no docstring"


@pytest.mark.parametrize("name", nd.__all__)
def test_every_public_function_shows_an_example(name: str) -> None:
    value = getattr(nd, name)
    if isinstance(value, types.FunctionType) or name == "Recipe":
        assert "Example:" in (value.__doc__ or ""), f"neardup.{name} has no example"


@pytest.mark.parametrize("module", ["neardup", *MODULES])
def test_every_example_is_right(module: str) -> None:
    result = doctest.testmod(
        importlib.import_module(module),
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
    )
    assert result.failed == 0


def test_a_public_name_is_not_hidden_by_the_module_of_its_name() -> None:
    code = (
        "import pkgutil, importlib, types, neardup as nd\n"
        "for found in pkgutil.walk_packages(nd.__path__, 'neardup.'):\n"
        "    importlib.import_module(found.name)\n"
        "print([n for n in nd.__all__ if isinstance(getattr(nd, n), types.ModuleType)])\n"
    )
    assert run_python(code) == "[]"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simhsah'"):
        _ = nd.simhsah


HEAVY = ["llvmlite", "numba", "numpy", "orjson", "pyarrow", "rich.progress"]


def closeness_calls() -> dict[str, Callable[..., object]]:
    """Every public call that takes a similarity or a distance."""
    named = {
        f"{room.__name__}.{name}": getattr(room, name)
        for room in (nd, neardup.spark)
        for name in room.__all__
        if inspect.isfunction(getattr(room, name))
    }
    named |= {"neardup.Index": nd.Index, "neardup.DurableIndex.open": nd.DurableIndex.open}
    return {
        name: call
        for name, call in named.items()
        if {"similarity", "distance"} & set(inspect.signature(call).parameters)
    }


@pytest.mark.parametrize("name", closeness_calls())
def test_another_librarys_name_of_an_argument_is_told_in_one_line(name: str) -> None:
    call = closeness_calls()[name]
    own = [
        each for each in ("similarity", "distance") if each in inspect.signature(call).parameters
    ]
    meant = " or ".join(f"{each}=" for each in own)
    public = name.removeprefix("neardup.").removeprefix("spark.")
    with pytest.raises(nd.UsageError) as raised:
        call(threshold=0.8)
    assert str(raised.value) == f"{public} has no argument threshold: did you mean {meant}?"
    with pytest.raises(nd.UsageError, match="it takes "):
        call(zzz=1)


def test_a_slip_of_the_pen_in_an_argument_is_told() -> None:
    with pytest.raises(
        nd.UsageError, match=r"^dedup has no argument mesure: did you mean measure="
    ):
        nd.dedup(["a b c"], mesure="cosine")
    with pytest.raises(TypeError, match="missing 1 required"):
        nd.dedup()


@pytest.mark.parametrize(
    "action",
    [
        "import neardup; dir(neardup); neardup.Recipe().digest",
        "sys.argv = ['neardup', '--help']; import neardup.cli; neardup.cli.app(standalone_mode=0)",
        (
            "sys.argv = ['neardup', 'dedup', '--help']; import neardup.cli;"
            " neardup.cli.app(standalone_mode=0)"
        ),
    ],
    ids=["import", "help", "dedup-help"],
)
def test_starting_loads_nothing_heavy(action: str) -> None:
    code = f"import sys; {action}; print([x for x in {HEAVY} if x in sys.modules])"
    assert run_python(code).splitlines()[-1] == "[]"


def test_a_command_loads_no_library_that_it_does_not_use() -> None:
    code = (
        "import sys\n"
        "libraries = {'numba', 'pandas', 'pyarrow', 'scipy'}\n"
        "sys.argv = ['neardup', 'compare', '--text-a', 'a b', '--text-b', 'a b c']\n"
        "from neardup.__main__ import main\n"
        "try: main()\nfinally: print(libraries & set(sys.modules))"
    )
    loaded = run_python(code).splitlines()[-1]
    assert set(ast.literal_eval(loaded)) <= {"numba", "pyarrow"}


def test_a_distance_loads_no_kernel() -> None:
    code = "import sys, neardup as nd; print(nd.distance(1, 2), 'numba' in sys.modules)"
    assert run_python(code) == "2 False"


def test_a_run_over_json_lines_loads_nothing_for_parquet(tmp_path: Path) -> None:
    lines = tmp_path / "in.jsonl"
    lines.write_text('{"text": "a b c"}\n')
    code = (
        "import atexit, sys\n"
        "heavy = {'pyarrow.parquet', 'ssl'}\n"
        "atexit.register(lambda: print(sorted(heavy & set(sys.modules))))\n"
        f"sys.argv = ['neardup', 'dedup', {str(lines)!r}, '-o', {str(tmp_path / 'out.jsonl')!r}]\n"
        "from neardup.__main__ import main; main()"
    )
    assert run_python(code).splitlines()[-1] == "[]"


def test_loading_a_step_compiles_nothing() -> None:
    code = (
        "import sys, neardup as nd\n"
        "[getattr(nd, name) for name in nd.__all__]\n"
        "print('numba' in sys.modules)\n"
    )
    assert run_python(code) == "False"


def run_python(code: str) -> str:
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=400, check=True
    )
    return process.stdout.strip()
