"""Steps for datatrove: exact near-duplicates in place of MinHash, and a filter with an index.

NeardupTexts (any number of tasks), NeardupCluster (one task), and then datatrove's own
MinhashDedupFilter (as many tasks as the first, after the same reader), which reads what they write.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from neardup.errors import DataError, UsageError
from neardup.features.text import text_array
from neardup.fingerprinting.question import Question
from neardup.fingerprinting.recipe import Recipe
from neardup.integrations.columns import missing
from neardup.integrations.seen import SeenIndex, open_index
from neardup.pipeline import dedup

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from datatrove.data import Document, DocumentsPipeline
    from datatrove.io import DataFolder, DataFolderLike
    from datatrove.pipeline.writers.disk_base import DiskWriter

    from neardup.runtime.types import Flags, Rows

try:
    from datatrove.io import get_datafolder
    from datatrove.pipeline.base import PipelineStep
    from datatrove.pipeline.filters.base_filter import BaseFilter
    from datatrove.utils.text import simplify_text
except ImportError:
    raise missing("datatrove", __name__) from None

__all__ = ["NeardupCluster", "NeardupFilter", "NeardupTexts"]

_TASKS, _PRESET = b"neardup-tasks", b"neardup-preset"
"""Metadata keys of a file of texts: the number of tasks, and the preset."""
_BATCH: Final = 4096
_OFFERED: Final = 1024
_ROW: Final = np.dtype("<u4")
"""The packed row number of a document within its task, as datatrove reads it."""
_PRESETS: Final = {"datatrove": Question(Recipe(ngram=5))}
"""The question of the cluster step, by preset."""


class NeardupTexts(PipelineStep):  # type: ignore[misc]  # datatrove has no types
    """Step 1, with any number of tasks: writes each task's texts, in order, as compressed Arrow.

    Args:
        output_folder: Where; the files may go once step 2 has read them.
        preset: "datatrove" normalises texts as its MinHash does by default (lower case, each number
            as 0, no punctuation or accents) and compares runs of five words.

    Raises:
        UsageError: For another preset.
    """

    type = "🫂 - DEDUP"
    name = "🎯 neardup texts"

    def __init__(self, output_folder: DataFolderLike, preset: str | None = None) -> None:
        """Store the settings and check the preset."""
        super().__init__()
        if preset is not None and preset not in _PRESETS:
            raise UsageError(f"preset is {preset!r}: use {', '.join(_PRESETS)}, or leave it out")
        self.output_folder, self.preset = get_datafolder(output_folder), preset

    def run(self, data: DocumentsPipeline, rank: int = 0, world_size: int = 1) -> None:
        """Write the texts of a task; an empty file for a task without documents."""
        about = {_TASKS: str(world_size), _PRESET: self.preset or ""}
        schema = pa.schema([("text", pa.large_string())], about)
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with (
            self.output_folder.open(f"{rank:06d}.arrow", "wb") as file,
            pa.ipc.new_file(file, schema, options=options) as writer,
        ):
            for texts in _batches(data or ()):
                with self.track_time("batch"):
                    plain = texts if self.preset is None else list(map(simplify_text, texts))
                    writer.write_table(pa.table([text_array(plain)], schema))
                self.stat_update("total", value=len(texts))


class NeardupCluster(PipelineStep):  # type: ignore[misc]  # datatrove has no types
    """Step 2, a single task: decides what datatrove's MinhashDedupFilter removes.

    Writes `000000.remove` and so on for each task of step 1, and, where asked for, `.clusters` and
    `.sizes`, as datatrove's own cluster step does.

    Args:
        input_folder: Of step 1.
        output_folder: Where.
        save_cluster_id: Write `.clusters`, for `load_cluster_ids` of the filter.
        save_cluster_size: Write `.sizes`, for `load_cluster_sizes` of the filter.
        options: Of `neardup.dedup`: similarity, question, keep, policy, memory and others that name
            no column.
    """

    type = "🫂 - DEDUP"
    name = "🎯 neardup cluster"

    def __init__(
        self,
        input_folder: DataFolderLike,
        output_folder: DataFolderLike,
        *,
        save_cluster_id: bool = False,
        save_cluster_size: bool = False,
        **options: Any,
    ) -> None:
        """Store the folders and options."""
        super().__init__()
        self.input_folder = get_datafolder(input_folder)
        self.output_folder = get_datafolder(output_folder)
        self.save_cluster_id, self.save_cluster_size = save_cluster_id, save_cluster_size
        self.options = options

    def run(self, data: DocumentsPipeline = None, rank: int = 0, world_size: int = 1) -> None:
        """Decide, and write the removal files of all tasks.

        Raises:
            UsageError: With more than one task.
            DataError: If files of step 1 are missing or do not belong together.
        """
        del data, rank
        if world_size != 1:
            raise UsageError(f"the cluster step has {world_size} tasks: run it with tasks=1")
        with self.track_time():
            names, sizes, preset = _texts_in(self.input_folder)
            paths = [_Location(path) for path in self.input_folder.resolve_paths(names)]
            result = dedup(paths, **(_question_of(preset, self.options) | self.options))
            for name, (begin, end) in zip(names, _ranges(sizes), strict=True):
                kept, cluster = result.kept[begin:end], result.cluster
                self._write(name.removesuffix(".arrow"), kept, cluster, slice(begin, end))
        self.stat_update("to_remove", value=int(np.count_nonzero(~result.kept)))

    def _write(self, stem: str, kept: Flags, cluster: Rows, own: slice) -> None:
        """Write a task's removal file, even if empty: the filter skips a missing one silently."""
        rows = np.arange(kept.size).astype(_ROW)
        self._file(f"{stem}.remove", rows[~kept])
        sizes = np.bincount(cluster, minlength=1)[cluster[own]]
        shared = sizes > 1
        for suffix, kind, values in (
            (self.save_cluster_id, "clusters", cluster[own]),
            (self.save_cluster_size, "sizes", sizes),
        ):
            if suffix:
                pairs = np.column_stack([rows[shared], values[shared].astype(_ROW)])
                self._file(f"{stem}.{kind}", pairs)

    def _file(self, name: str, values: Any) -> None:
        with self.output_folder.open(name, "wb") as file:
            file.write(values.astype(_ROW).tobytes())


class NeardupFilter(BaseFilter):  # type: ignore[misc]  # datatrove has no types
    """Filter step that drops documents near a stored one, and adds the others to the index.

    `doc.metadata` of a dropped one has `near_duplicate_of`, an id, and `similarity` (or
    `distance`). A document that the index has under its own id passes: a task may be repeated.

    Args:
        index: The folder, made if it does not exist, or the URL of a service. Tasks that update a
            folder run one at a time; any number may ask a service.
        similarity: What a new index is made for, or the least of a match; as
            `neardup index create` by default.
        question: Similarity, measure and recipe as one value.
        update: Add what passes. Without it any number of tasks may read the index.
        exclusion_writer: Of datatrove: where dropped documents go.
        key: Of the service, if it needs one.
    """

    name = "🎯 neardup index"

    def __init__(
        self,
        index: str | os.PathLike[str],
        similarity: float | None = None,
        question: Question | None = None,
        *,
        update: bool = True,
        exclusion_writer: DiskWriter | None = None,
        key: str | None = None,
    ) -> None:
        """Store the settings; the task opens the index, since steps are pickled to workers."""
        super().__init__(exclusion_writer, _OFFERED)
        self.index, self.update = os.fspath(index), update
        self.similarity, self.question, self.key = similarity, question, key
        self._open: SeenIndex | None = None

    def run(self, data: DocumentsPipeline, rank: int = 0, world_size: int = 1) -> DocumentsPipeline:
        """Pass on new documents; an updated index is committed before a batch passes on."""
        self._open = open_index(
            self.index, self.similarity, self.question, readonly=not self.update, key=self.key
        )
        with contextlib.closing(self._open):
            yield from super().run(data, rank, world_size)

    def filter(self, doc: Document) -> bool | tuple[bool, str]:
        """Whether a document passes."""
        return self.filter_batch([doc])[0]

    def filter_batch(self, batch: list[Document]) -> list[bool | tuple[bool, str]]:
        """Whether each document passes; the reason is one word, by which datatrove counts."""
        index = self._open
        if index is None:
            raise UsageError("the index is open while a pipeline runs: call run")
        ids, texts = [doc.id for doc in batch], [doc.text for doc in batch]
        matches = _offered(index, ids, texts) if self.update else _nearest(index, ids, texts)
        for doc, match in zip(batch, matches, strict=True):
            if match is not None:
                doc.metadata["near_duplicate_of"], doc.metadata[index.by] = match
        return [True if match is None else (False, "near_duplicate") for match in matches]


class _Location(os.PathLike[str]):
    """A path or URI in the form that `neardup.dedup` takes; it would take strings for texts."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return self._path


def _batches(data: Iterable[Document]) -> Iterator[list[str]]:
    """The texts of documents in batches."""
    texts: list[str] = []
    for document in data:
        texts.append(document.text)
        if len(texts) == _BATCH:
            yield texts
            texts = []
    if texts:
        yield texts


def _texts_in(folder: DataFolder) -> tuple[list[str], list[int], str]:
    """The files of step 1 in the order of tasks, the documents of each, and the preset.

    Raises:
        DataError: If one is missing, or they are of several runs.
    """
    names = sorted(folder.list_files(glob_pattern="*.arrow"))
    sizes, folders = [], set()
    for name in names:
        with folder.open(name, "rb") as file:
            size, about = _size_of(file)
        sizes.append(size)
        folders.add((about.get(_TASKS, b"").decode(), about.get(_PRESET, b"").decode()))
    if not names:
        raise DataError(f"{folder.path} has no texts: run NeardupTexts with this output folder")
    if len(folders) > 1:
        raise DataError(f"the files of {folder.path} are of several runs: empty the folder")
    tasks, preset = folders.pop()
    if names != [f"{rank:06d}.arrow" for rank in range(int(tasks or 0))]:
        raise DataError(
            f"{folder.path} has {len(names)} files of {tasks or 'unknown'} tasks: run the missing"
            " tasks of NeardupTexts again"
        )
    return names, sizes, preset


def _size_of(file: BinaryIO) -> tuple[int, dict[bytes, bytes]]:
    """The number of documents in a file, from its batch headers, and its schema's metadata."""
    reader = pa.ipc.open_file(file)
    size = sum(reader.get_batch(at).num_rows for at in range(reader.num_record_batches))
    return size, reader.schema.metadata or {}


def _ranges(sizes: list[int]) -> list[tuple[int, int]]:
    ends = np.cumsum(sizes).tolist()
    return [(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def _question_of(preset: str, options: dict[str, Any]) -> dict[str, Any]:
    """The question of a preset, with the similarity that options name."""
    if not preset or {"question", "distance", "recipe", "measure"} & set(options):
        return {}
    question = _PRESETS[preset]
    return {"similarity": question.similarity, "recipe": question.recipe}


def _offered(index: SeenIndex, ids: list[str], texts: list[str]) -> list[Any]:
    """The (id, closeness) of each document's match; None for a new one, which is then stored."""
    answers = index.offer_many(ids, texts)
    index.commit()
    return [answer.near for answer in answers]


def _nearest(index: SeenIndex, ids: list[str], texts: list[str]) -> list[Any]:
    """The (id, closeness) of the nearest document with another id, or None."""
    matches: list[Any] = [None] * len(ids)
    table = index.query_batch(texts, limit=2)
    for row, *match in zip(*table.to_pydict().values(), strict=True):
        if matches[row] is None and match[0] != ids[row]:
            matches[row] = tuple(match)
    return matches
