"""The files of a run as a frame of documents, with counts and messages of their reading."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from neardup import errors
from neardup.documents import rejects_doubt
from neardup.documents.ordering import OneKind
from neardup.errors import UsageError
from neardup.spark.workers.documents import DOCUMENTS, read_files
from neardup.spark.workers.file_inputs import FILE, file_rows
from neardup.spark.workers.file_outputs import make_folders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import InputFormat, ReadOptions, Source
    from neardup.pipeline.run.rule import Choice, Rule
    from neardup.spark.engine import Engine
    from neardup.spark.engine_session import Frame

__all__ = ["Inputs", "frame_of_files", "notes_of", "read_inputs"]

_COUNTED: Final = re.compile(r"((?:compared \D* of )?)([\d,]+)( .*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs as the workers see them.

    Args:
        sources: The inputs.
        files: A row for each file that a task reads: its place as `rank`, and FILE.
        parts: How many of these rows there are.
        documents: DOCUMENTS, kept.
        counts: As `_counts_of`.
        notes: Lines about the reading.
        warnings: Likewise, of what may be wrong.
    """

    sources: Sequence[Source]
    files: Frame
    parts: int
    documents: Frame
    counts: dict[str, int]
    notes: list[str]
    warnings: list[str]


def read_inputs(
    engine: Engine,
    sources: Sequence[Source],
    how: tuple[ReadOptions, InputFormat],
    rule: Rule,
    choice: Choice,
    to: tuple[str, tuple[str, ...]],
) -> Inputs:
    """Read files and fingerprint their documents, each file in one task.

    Args:
        engine: Where.
        sources: The inputs.
        how: Which fields to read, and the inputs' format.
        rule: How to fingerprint.
        choice: What decides which document is kept.
        to: Folder of the run, and what is written below it, for which folders are made here.

    Raises:
        DataError, FileError, UsageError: What is wrong with the first input that could not be used.
    """
    make_folders(*to)
    files, parts = frame_of_files(engine, sources)
    step = partial(
        read_files, read=how[0], input_format=how[1], recipe=engine.ship(rule.recipe),
        how=(choice.keep, rule.by_features), folder=to[0], has_rejects="rejects" in to[1],
    )  # fmt: skip
    documents = engine.step(files, step, DOCUMENTS, keep="documents")
    notes, warnings = notes_of(documents, sources, choice.number)
    counts = _counts_of(documents, choice)
    rejects_doubt(counts["documents"], counts["rejected"])
    own = documents.where("number >= 0")
    return Inputs(sources, files, parts, own, counts, notes, warnings)


def frame_of_files(engine: Engine, sources: Sequence[Source]) -> tuple[Frame, int]:
    """A row for each file that a task reads, as in Inputs, and the number of files."""
    rows = [(rank, *row) for rank, row in enumerate(file_rows(sources))]
    files = engine.session.createDataFrame(rows, f"rank long, {FILE}")
    return files.repartition(max(1, min(engine.parts, len(rows))), "rank"), len(rows)


def _counts_of(documents: Frame, choice: Choice) -> dict[str, int]:
    """The numbers of DOCUMENTS, of empty ones, and of rejected records.

    Raises:
        UsageError: If the field that decides what is kept is a number in no record.
    """
    (row,) = documents.selectExpr(
        "count_if(number >= 0) AS documents",
        "count_if(number >= 0 AND octet_length(codes) = 0) AS empty",
        "count_if(number >= 0 AND NOT isnan(score)) AS scored",
        "coalesce(sum(rejected), 0) AS rejected",
    ).collect()
    if choice.number is not None and row["documents"] and not row["scored"]:
        raise UsageError(
            f"no record has a {'date' if choice.dates else 'number'} in the field {choice.number},"
            " which decides what is kept:"
            " name another one"
        )
    return dict(row.asDict())


def notes_of(
    documents: Frame, sources: Sequence[Source], field: str | None = None
) -> tuple[list[str], list[str]]:
    """The notes and warnings of reading, one line each, in the order of the inputs.

    Args:
        documents: DOCUMENTS.
        sources: The inputs.
        field: With the number or date that decides what is kept.

    Raises:
        DataError, FileError, UsageError: What is wrong with the first input that could not be used.
    """
    rows = documents.where("number < 0 AND address IS NOT NULL").select("number", "address")
    messages = [json.loads(row["address"]) for row in sorted(rows.collect(), reverse=True)]
    kinds = OneKind(field)
    for each in messages:
        if "error" in each:
            kind, message = each["error"]
            raise getattr(errors, kind)(message)
        kinds.check(each["name"], each["compares"])
    notes = [line for each in messages for line in each["notes"]]
    warnings = [f"{each['name']}: {line}" for each in messages for line in each["warnings"]]
    is_text = bool(sources) and sources[0].format == "text"
    return _added(notes) if is_text else list(dict.fromkeys(notes)), warnings


def _added(lines: list[str]) -> list[str]:
    """Lines about parts of the text files, which are one input, with their counts added.

    Example:
        >>> _added(["2 files were read as x", "compared text of 9 pages"] * 2)
        ['4 files were read as x', 'compared text of 18 pages']
    """
    total: dict[tuple[str, str], int] = {}
    others: dict[str, None] = {}
    for line in lines:
        match = _COUNTED.fullmatch(line)
        if match is None:
            others[line] = None
            continue
        key = match[1], match[3]
        total[key] = total.get(key, 0) + int(match[2].replace(",", ""))
    added = [f"{before}{count:,}{after}" for (before, after), count in sorted(total.items())]
    return [*added, *others]
