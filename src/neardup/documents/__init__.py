"""Reading documents and writing the kept ones.

The flow: `open_sources` checks the inputs, `Source.batches` reads them, `write_outputs` writes the
kept records, and an `OutputSet` makes all outputs of a run appear together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.runtime.lazy import lazily

if TYPE_CHECKING:
    from neardup.documents.batch import Batch, ReadOptions
    from neardup.documents.extensions import (
        EXTENSIONS,
        InputFormat,
        check_extension,
        format_of_path,
    )
    from neardup.documents.extraction import Extraction
    from neardup.documents.files.atomic import AtomicFile
    from neardup.documents.files.output_set import OutputSet, is_folder
    from neardup.documents.formats.open import FORMATS, open_sources, read_table
    from neardup.documents.rejects import Rejects, rejects_doubt
    from neardup.documents.result_tables import write_table
    from neardup.documents.source import Source
    from neardup.documents.write_kept import plan_outputs, write_outputs

__all__ = [
    "EXTENSIONS",
    "FORMATS",
    "AtomicFile",
    "Batch",
    "Extraction",
    "InputFormat",
    "OutputSet",
    "ReadOptions",
    "Rejects",
    "Source",
    "check_extension",
    "check_kept",
    "format_of_path",
    "is_folder",
    "open_sources",
    "plan_outputs",
    "read_table",
    "rejects_doubt",
    "write_outputs",
    "write_table",
]

_HOMES: Final = {
    "batch": ("Batch", "ReadOptions"),
    "extensions": ("EXTENSIONS", "InputFormat", "check_extension", "format_of_path"),
    "extraction": ("Extraction",),
    "files.atomic": ("AtomicFile",),
    "files.output_set": ("OutputSet", "is_folder"),
    "formats.open": ("FORMATS", "open_sources", "read_table"),
    "rejects": ("Rejects", "rejects_doubt"),
    "source": ("Source",),
    "result_tables": ("write_table",),
    "write_kept": ("check_kept", "plan_outputs", "write_outputs"),
}
__getattr__ = lazily(__name__, _HOMES)
