"""What docstrings name in backticks exists where a reader looks for it."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from functools import cache
from typing import TYPE_CHECKING, Final

import neardup as nd
from suite import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE: Final = ROOT / "src" / "neardup"
FILES: Final = sorted(PACKAGE.rglob("*.py"))
IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*(\.\w+)*(\(\))?")
"""Other text in backticks is an option, a file, an expression or a command."""
EVERYWHERE: Final = {*dir(builtins), *keyword.kwlist, *nd.__all__, "nd", "neardup"}
FOREIGN: Final = {"char", "load_cluster_ids", "load_cluster_sizes", "string_view"}
"""A type of C, two options of datatrove, a type of Arrow."""


def dotted(file: Path) -> str:
    """The name under which a file is imported."""
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """The strings that stand alone: of a module, a class, a function, or of the name above."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for part in body if isinstance(body, list) else []:
            if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):
                yield part.value


def words(node: ast.AST) -> Iterator[str]:
    """The names that a node of code has, and the words of a literal value."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            yield name
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.keyword(arg=str(name)) | ast.MatchAs(name=str(name)):
            yield name
        case ast.alias(name=name, asname=other):
            yield from (other or name).split(".")
        case ast.Constant(value=str(text)):
            yield from re.findall(r"\w+", text)


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


@cache
def code_words(file: Path) -> frozenset[str]:
    """Every name and word of a file except those of its docstrings."""
    tree = parsed(file)
    prose = {id(x) for x in docstrings(tree)}
    return frozenset(w for x in ast.walk(tree) if id(x) not in prose for w in words(x))


@cache
def files_by_name() -> dict[str, Path]:
    return {dotted(file): file for file in FILES}


@cache
def classes() -> dict[str, list[ast.ClassDef]]:
    """The classes of all files by name."""
    by_name: dict[str, list[ast.ClassDef]] = {}
    for node in (x for file in FILES for x in ast.walk(parsed(file))):
        if isinstance(node, ast.ClassDef):
            by_name.setdefault(node.name, []).append(node)
    return by_name


def is_member(name: str, holder: str) -> bool:
    """Whether a class of this name, or one that it is made of, names something in its body."""
    nodes = classes().get(holder, [])
    bases = {w for node in nodes for base in node.bases for w in words(base)} - {holder}
    return any(name in words(x) for node in nodes for x in ast.walk(node)) or any(
        is_member(name, x) for x in bases
    )


def imported(file: Path) -> Iterator[Path]:
    """The files of the package that a file imports, for types too."""
    for node in ast.walk(parsed(file)):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{x.name}" for x in node.names)]
        elif isinstance(node, ast.Import):
            names = [x.name for x in node.names]
        yield from (files_by_name()[x] for x in names if x in files_by_name())


def near(file: Path) -> set[str]:
    """What a reader of a file knows: its words, those of its imports, the files of its folder.

    The page of a folder, __init__.py, also names those of the folders below.
    """
    is_face = file.name == "__init__.py"
    folder = {x.stem for x in (file.parent.rglob("*") if is_face else file.parent.iterdir())}
    return EVERYWHERE.union(FOREIGN, folder, code_words(file), *map(code_words, imported(file)))


def is_path(name: str) -> bool:
    """Whether a dotted name leads to something: from the package, or to a member of a class."""
    head, _, last = name.rpartition(".")
    for module in (head, f"neardup.{head}"):
        if f"{module}.{last}" in files_by_name():
            return True
        if module in files_by_name() and last in code_words(files_by_name()[module]):
            return True
    holder = head.rpartition(".")[2]
    return last in nd.__all__ if holder in {"nd", "neardup"} else is_member(last, holder)


def unknown(file: Path) -> Iterator[str]:
    """The names in backticks of a file's docstrings that lead nowhere, each with its line."""
    known = near(file)
    for docstring in docstrings(parsed(file)):
        for text in re.findall(r"`([^`]+)`", str(docstring.value)):
            name = text.removesuffix("()")
            is_there = is_path(name) or known.issuperset(name.split("."))
            if IDENTIFIER.fullmatch(text) and not is_there:
                yield f"{file.relative_to(ROOT)}:{docstring.lineno}: `{text}`"


def test_names_in_docstrings_exist_in_their_module_or_what_that_imports() -> None:
    assert [x for file in FILES for x in unknown(file)] == []
