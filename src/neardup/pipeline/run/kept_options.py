"""The options of a run, stored next to its table of duplicates, for `neardup show` and others.

Those of dropped.csv are in .dropped.csv.options.json, which appears with it and has the table's
checksum. If the table has changed, by another run or by hand, the options are ignored.
"""

from __future__ import annotations

import glob
import json
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from neardup.documents.files.archives import is_archive
from neardup.documents.files.atomic import STANDARD_OUTPUT, is_device
from neardup.documents.files.remote import as_local, is_uri
from neardup.fingerprinting.recipe import Recipe
from neardup.pipeline.run.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import OutputSet

__all__ = ["keep_options", "kept_inputs", "kept_options", "kept_rule", "options_path"]

_PIECE_BYTES: Final = 1 << 20


def keep_options(
    table: str | None, inputs: Sequence[str], options: dict[str, Any], written: OutputSet,
    against: Sequence[str] = (),
) -> None:  # fmt: skip
    """Write the options of a run next to its table, if that is a file of this machine.

    Args:
        table: The path of `--duplicates`.
        inputs: The run's inputs, as named in its call.
        options: Those of rule, choice and reading, by name.
        written: The outputs of the run, with the complete table.
        against: Files that the inputs were compared with.
    """
    path = options_path(table)
    if table is None or path is None:
        return
    paths = [_from(path, each) for each in inputs]
    facts = {"inputs": [] if "-" in inputs else paths, "table": _mark(written.finished(table))}
    if against:
        facts["against"] = [_from(path, each) for each in against]
    facts |= options
    # Names that are not UTF-8 have surrogates, which this writes as escapes.
    written.create(path).write(json.dumps(facts, indent=2).encode() + b"\n")
    if path in written.replaced:  # nobody named it, so no note about it
        written.replaced.remove(path)


def options_path(table: str | None) -> str | None:
    """The path where `keep_options` writes the options of a table; None if it writes none."""
    if table is None or is_uri(table) or table in STANDARD_OUTPUT or is_device(as_local(table)):
        return None
    return str(_place(table))


def kept_options(table: str) -> dict[str, Any]:
    """The options that `keep_options` wrote for a table; {} if there are none."""
    try:
        facts = json.loads(_place(table).read_bytes())
        is_whole = isinstance(facts, dict) and isinstance(facts.get("options"), dict)
        return facts if is_whole and facts.get("table") == _mark(Path(as_local(table))) else {}
    except (OSError, ValueError):
        return {}


def kept_inputs(table: str, facts: dict[str, Any], *, against: bool = False) -> list[str]:
    """The inputs of a table's run, if all files among them are still there.

    Args:
        table: What the run wrote.
        facts: Of that table, as `kept_options` gives them.
        against: Give the files that the inputs were compared with as well.
    """
    folder = Path(as_local(table)).parent
    named = [str(path) for path in facts.get("inputs", ())]
    if named and against:
        named += map(str, facts.get("against", ()))
    inputs = [path if is_uri(path) else os.path.normpath(folder / path) for path in named]
    return inputs if all(map(_may_be_there, inputs)) else []


def _may_be_there(path: str) -> bool:
    """Whether a path is there, may be in an archive that is, or is more than one path."""
    if is_uri(path) or glob.has_magic(path) or Path(path).exists():
        return True
    return any(is_archive(str(each)) and each.is_file() for each in Path(path).parents)


def kept_rule(facts: dict[str, Any]) -> Rule | None:
    """The rule of the run; None if no options are known."""
    if not facts:
        return None
    options, recipe = facts["options"], Recipe.from_json(json.dumps(facts["recipe"]))
    similarity, distance = options.get("similarity"), options.get("distance")
    measure = options.get("measure") or "jaccard"
    if distance is None:
        return Rule(similarity, measure=measure, recipe=recipe)
    return Rule(distance=distance, verify=similarity, measure=measure, recipe=recipe)


def _from(place: str, path: str) -> str:
    """A path relative to the folder of `place`, so that both can be moved together."""
    path = as_local(path)
    if is_uri(path) or Path(path).is_absolute():
        return path
    return os.path.relpath(path, Path(place).parent)


def _mark(path: Path) -> dict[str, int]:
    """The size and checksum that identify a table."""
    nbytes = checksum = 0
    with path.open("rb", buffering=0) as file:
        while piece := file.read(_PIECE_BYTES):
            nbytes, checksum = nbytes + len(piece), zlib.crc32(piece, checksum)
    return {"bytes": nbytes, "crc32": checksum}


def _place(table: str) -> Path:
    path = Path(as_local(table))
    return path.with_name(f".{path.name}.options.json")
