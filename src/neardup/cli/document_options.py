"""The options for reading documents, which most commands share, and the values that they make."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from neardup.cli.options import input_option
from neardup.cli.signatures import option, takes
from neardup.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from neardup.documents import InputFormat, ReadOptions

__all__ = ["READING_OPTIONS", "Reading", "takes_documents"]


@dataclass(frozen=True)
class Reading:
    """The options for reading documents: a field for each option, in the order of the help."""

    text: Annotated[
        str,
        input_option(
            "--text",
            metavar="FIELD[,FIELD]",
            help="Field with the text; doc.body is a nested field.",
        ),
    ] = "text"
    id_field: Annotated[
        str | None,
        input_option("--id", metavar="FIELD", help="Field with the id; by default file:row."),
    ] = None
    format_name: Annotated[
        str | None,
        input_option(
            "--format",
            help="Format of all inputs: jsonl, json (an array), csv, tsv, parquet, arrow, excel (or"
            " excel:SHEET), mbox, warc, or text (each file is a document).",
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        input_option(
            "--delimiter",
            metavar="CHAR",
            help="Delimiter of CSV, such as ';' or tab; by default the first lines decide.",
        ),
    ] = None
    encoding: Annotated[
        str | None,
        input_option(
            "--encoding",
            metavar="NAME",
            help="Encoding of texts, JSON lines and CSV, such as cp1252 or utf-16; by default"
            " UTF-8.",
        ),
    ] = None
    records: Annotated[
        str | None,
        input_option(
            "--records",
            metavar="PATH",
            help="Path of the list of records in JSON documents, such as data or result.items.",
        ),
    ] = None
    extract: Annotated[
        str | None,
        input_option(
            "--extract",
            metavar="main|trafilatura|all|none",
            help="Part of HTML to compare: the main content, all visible text, or the markup"
            " too; by default"
            " main for .html files.",
        ),
    ] = None
    on_error: Annotated[
        str, input_option("--on-error", help="Bad records: stop, or skip them.")
    ] = "stop"
    rejects: Annotated[
        str | None,
        input_option("--rejects", metavar="FILE", help="Write skipped records to this file."),
    ] = None

    @property
    def input_format(self) -> InputFormat:
        """The format hints for all inputs.

        Raises:
            UsageError: For an unknown encoding or a delimiter that is not one character.
        """
        from neardup.documents import InputFormat

        return InputFormat(self.format_name, self.delimiter, self.encoding, records=self.records)

    def options(self, memory: str | None = None, **others: Any) -> ReadOptions:
        """The ReadOptions of a command; a record may take a 16th of --memory.

        Args:
            memory: The budget as text; by default that of --memory.
            others: Of ReadOptions: what the command knows from elsewhere.

        Raises:
            UsageError: If one of the options is wrong, or a rejects file lacks skipping.
        """
        from neardup.documents import ReadOptions
        from neardup.documents.batch import longest_record
        from neardup.runtime.free_memory import memory_bytes

        own = {
            "text": self._text_fields(), "id": self.id_field, "skip_errors": self._skips(),
            "extract": self.extract, "input_format": self.input_format,
            "record_bytes": longest_record(memory_bytes(memory)),
        }  # fmt: skip
        return ReadOptions(**own | others)

    def completed(self, facts: Mapping[str, Any]) -> Reading:
        """The options of a command, completed by the stored options of an earlier run.

        Args:
            facts: The stored options of the run, read by `neardup.pipeline.run.kept_options`.
        """
        kept, usual = facts.get("options", {}), Reading()
        names = {"text": "text", "id_field": "id", "format_name": "format"} | {
            name: name for name in ("delimiter", "encoding", "records", "extract")
        }
        return replace(
            self,
            **{
                own: kept[name]
                for own, name in names.items()
                if kept.get(name) is not None and getattr(self, own) == getattr(usual, own)
            },
        )

    def _text_fields(self) -> tuple[str, ...]:
        names = tuple(self.text.split(","))
        if "" in names:
            raise UsageError(
                f"--text is {self.text!r}: name a field, or several with commas between"
            )
        return names

    def _skips(self) -> bool:
        if self.on_error not in {"stop", "skip"}:
            raise UsageError(f"--on-error is {self.on_error!r}: use stop or skip")
        if self.rejects is not None and self.on_error == "stop":
            raise UsageError("--rejects requires --on-error skip")
        return self.on_error == "skip"


READING_OPTIONS = tuple(each.name for each in fields(Reading))


def takes_documents(*, without: Collection[str] = ()) -> Callable[[Callable[..., None]], Any]:
    """Decorate a command: the options of Reading replace its parameter `reading`.

    Args:
        without: Options that the command does not take.
    """
    kinds = get_type_hints(Reading, include_extras=True)
    options = [
        option(each.name, kinds[each.name], each.default)
        for each in fields(Reading)
        if each.name not in without
    ]
    return takes("reading", options, Reading)
