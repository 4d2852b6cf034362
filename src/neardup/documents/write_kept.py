"""Writing the kept records of all inputs: to one file, or to one file for each in a folder."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from neardup.documents.extensions import check_extension, ending_of, format_of_path
from neardup.documents.files.finding import check_relative, path_below
from neardup.documents.files.output_set import check_apart, check_no_file, is_folder
from neardup.documents.files.remote import as_local, is_uri
from neardup.documents.source import DocumentFiles, Source
from neardup.errors import UsageError
from neardup.runtime.threads import ahead, stop_if_abandoned, worker_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

    from neardup.documents.files.atomic import AtomicFile
    from neardup.documents.files.output_set import OutputSet

__all__ = ["check_kept", "plan_outputs", "write_outputs"]


def plan_outputs(sources: Sequence[Source], out: str) -> list[tuple[str, list[int]]]:
    """The inputs of each output; call it before reading, to fail early.

    Args:
        sources: The inputs.
        out: A file, "-" for standard output, or a folder (its name ends in a slash or has no
            extension), where each input gets an output with its own relative path.

    Returns:
        (path, indexes into `sources`) for each output, in order.

    Raises:
        UsageError: If inputs that should be joined have different formats, headers or schemas, if
            two share a relative path, if the output's extension stands for another format, or if
            text files have no folder to go to.
        DataError: If an input's name leads out of the folder.
    """
    if not sources:
        raise UsageError("no inputs; name at least one file")
    if isinstance(sources[0], DocumentFiles):
        _check_text_folder(sources[0], out)
        return [(out, [0])]
    if is_folder(out):
        check_no_file(out)
        return _plan_folder(sources, out)
    _check_joinable(sources)
    output_format = None if out == "-" else format_of_path(out)
    check_extension(out, keeps=True)
    is_json = ending_of(out) == ".json" and sources[0].format == "json"
    allowed = (None, sources[0].format, *sources[0].also_written)
    if output_format not in allowed and not is_json:
        raise UsageError(
            f"{out} would be {output_format}, but {sources[0].name} is {sources[0].format};"
            " records keep their format: use its extension"
        )
    sources[0].check_output(out)
    return [(out, list(range(len(sources))))]


def check_kept(
    sources: Sequence[Source], out: str | None, others: Sequence[str], outputs: OutputSet
) -> None:
    """Refuse, before hours of reading, outputs that could not be written at the end.

    Args:
        sources: The inputs.
        out: Of the kept records, as for `plan_outputs`; None writes none.
        others: The paths of the other outputs.
        outputs: The set that all of them become part of.

    Raises:
        UsageError, DataError, FileError: As `plan_outputs`, and `create` and `create_tree` of
            OutputSet.
    """
    planned = [] if out is None else [path for path, _ in plan_outputs(sources, out)]
    if out is not None and isinstance(sources[0], DocumentFiles):
        outputs.check_tree(out, others)
        planned = []
    for path in others:
        outputs.check(path)
    into_folder = out is not None and is_folder(out)
    for path in planned:
        if not (into_folder and is_uri(as_local(path))):  # which would be a request for each
            outputs.check(path, makes_folder=into_folder)
    check_apart([*others, *planned])


def write_outputs(
    sources: Sequence[Source],
    keep_masks: Sequence[npt.NDArray[np.bool_]],
    out: str,
    outputs: OutputSet,
    tell: Callable[[int], object] | None = None,
    workers: int | None = 1,
) -> list[str]:
    """Write the kept records of inputs that have been read; the caller commits.

    Args:
        sources: The inputs, each read to the end.
        keep_masks: For each input a bool array, one flag for each accepted record.
        out: As for `plan_outputs`.
        outputs: The set that the outputs become part of.
        tell: Called with the bytes of input read since the last call.
        workers: Threads; the processors at hand if None. The same bytes come of any number.

    Returns:
        The paths written.

    Raises:
        UsageError: As `plan_outputs` and OutputSet.create.
        FileError: If an input changed since it was read, or a read or write fails.
    """
    plan, threads = plan_outputs(sources, out), worker_count(workers)
    most = min(each.outputs_at_once for each in sources) if _are_apart(sources) else 1
    at_once = min(threads, len(plan), most)
    of_each = threads // at_once
    lock = threading.Lock()

    def told(nbytes: int) -> None:
        stop_if_abandoned()  # an error in another thread need not wait for the end of this output
        if tell is not None:
            with lock:
                tell(nbytes)

    for source in sources:
        source.begin_writing(told, of_each)
    if isinstance(sources[0], DocumentFiles):
        sources[0].copy_kept(keep_masks[0], outputs.create_tree(out))
        sources[0].went_to(sources[0].nbytes or 0)
        return [out]

    def write(begun: tuple[AtomicFile, list[int]]) -> None:
        target, members = begun
        chosen = [sources[i] for i in members]
        chosen[0].write_joined(chosen, [keep_masks[i] for i in members], target)
        for source in chosen:
            source.went_to(source.nbytes or 0)
        target.finish()

    begun = _begun(plan, sources, outputs, out, of_each)
    written = map(write, begun) if at_once == 1 else ahead(at_once, write, begun)
    return [path for (path, _), _ in zip(plan, written, strict=True)]


def _begun(
    plan: list[tuple[str, list[int]]],
    sources: Sequence[Source],
    outputs: OutputSet,
    out: str,
    workers: int,
) -> Iterator[tuple[AtomicFile, list[int]]]:
    """Begin each output when it is its turn; with the indexes of its inputs."""
    into_folder = is_folder(out)
    if into_folder:
        outputs.create_folder(out)
    for path, members in plan:
        if into_folder and "/" in sources[members[0]].relative:
            outputs.create_folder(path.rpartition("/")[0])
        yield outputs.create(path, workers), members


def _are_apart(sources: Sequence[Source]) -> bool:
    """Whether inputs can be read beside each other: files of this machine that share nothing."""
    return all(each.is_here and each.archive is None and each.edits is None for each in sources)


def _check_text_folder(source: DocumentFiles, out: str) -> None:
    if not is_folder(out):
        raise UsageError(
            f"{out} would be one file, but {source.paths[0]} is text, where each file is a"
            " document; name a folder for the kept files (-o OUT/)"
        )
    check_no_file(out)
    for relative in source.relatives:
        check_relative(relative, out)


def _plan_folder(sources: Sequence[Source], out: str) -> list[tuple[str, list[int]]]:
    first: dict[str, str] = {}
    for source in sources:
        if source.relative in first:
            raise UsageError(
                f"{first[source.relative]} and {source.name} would both be written to"
                f" {path_below(out, source.relative)}; name the folder that holds both, rename"
                " one or run them apart"
            )
        first[source.relative] = source.name
    return [(path_below(out, source.relative), [i]) for i, source in enumerate(sources)]


def _check_joinable(sources: Sequence[Source]) -> None:
    if len(sources) == 1:
        return
    advice = "write to a folder (-o OUT/) or run them apart"
    model: Source | None = None
    for source in sources:
        if source.format != sources[0].format:
            raise UsageError(
                f"{sources[0].name} is {sources[0].format} and {source.name} is"
                f" {source.format}, so they cannot share one output; {advice}"
            )
        if source.encoding != sources[0].encoding:
            raise UsageError(
                f"{sources[0].name} is {sources[0].encoding or 'utf-8'} and {source.name} is"
                f" {source.encoding or 'utf-8'}, so they cannot share one output; {advice}"
            )
        if source.layout() is None:
            continue
        model = model or source
        if source.layout() != model.layout():
            what = {"csv": "header", "tsv": "header", "warc": "compression"}.get(
                source.format, "schema"
            )
            raise UsageError(
                f"{model.name} and {source.name} differ in their {what}, so they cannot share"
                f" one output; {advice}"
            )
