"""What a run's documents were: their counts, and what reading them has to say."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from neardup import errors
from neardup.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import Source
    from neardup.pipeline.run.rule import Choice

__all__ = ["counts_of", "notes_of"]

_COUNTED: Final = re.compile(r"((?:of )?)([\d,]+)( .*)", re.DOTALL)


def counts_of(documents: Any, choice: Choice) -> dict[str, int]:
    """How many DOCUMENTS there are, how many are empty, and how many records were rejected.

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
            f"no record has a number in the field {choice.number}, which decides what is kept:"
            " name another one"
        )
    return dict(row.asDict())


def notes_of(documents: Any, sources: Sequence[Source]) -> tuple[list[str], list[str]]:
    """The notes and the warnings of reading, a line each, in the order of the inputs.

    Raises:
        DataError, FileError, UsageError: What is wrong with the first input that could not be used.
    """
    rows = documents.where("number < 0 AND address IS NOT NULL").select("number", "address")
    told = [json.loads(row["address"]) for row in sorted(rows.collect(), reverse=True)]
    for each in told:
        if "error" in each:
            kind, message = each["error"]
            raise getattr(errors, kind)(message)
    notes = [line for each in told for line in each["notes"]]
    warnings = [f"{each['name']}: {line}" for each in told for line in each["warnings"]]
    is_text = bool(sources) and sources[0].format == "text"
    return _added(notes) if is_text else list(dict.fromkeys(notes)), warnings


def _added(lines: list[str]) -> list[str]:
    """Lines about parts of the text files, which are one input: their counts added, others once.

    Example:
        >>> _added(["2 files were read as x", "of 1,000 HTML texts", "3 files were read as x"])
        ['5 files were read as x', 'of 1,000 HTML texts']
    """
    total: dict[tuple[str, str], int] = {}
    others: dict[str, None] = {}
    for line in lines:
        found = _COUNTED.fullmatch(line)
        if found is None:
            others[line] = None
            continue
        key = found[1], found[3]
        total[key] = total.get(key, 0) + int(found[2].replace(",", ""))
    added = [f"{before}{count:,}{after}" for (before, after), count in sorted(total.items())]
    return [*added, *others]
