"""Deduplication of Hugging Face datasets, by their documented `select`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from neardup.errors import UsageError
from neardup.integrations.columns import missing, named_columns
from neardup.pipeline import decontaminate as find_questions
from neardup.pipeline import dedup as dedup_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.index.memory_index import Index
    from neardup.pipeline import DedupResult

try:
    import datasets
except ImportError:
    raise missing("datasets", __name__) from None

__all__ = ["decontaminate", "dedup"]

Kind = TypeVar("Kind", datasets.Dataset, datasets.DatasetDict, datasets.IterableDataset)

_FIRST: Final = ("test", "validation", "train")
"""The order of splits in which documents are kept: test before train, so that train loses the
copies."""


def dedup(
    dataset: Kind,
    column: str | Sequence[str] = "text",
    *,
    order: Sequence[str] | None = None,
    index: Index | None = None,
    **options: Any,
) -> tuple[Kind, DedupResult | None]:
    """Remove near-duplicates from a dataset, or from all splits of one together.

    Args:
        dataset: A Dataset, a DatasetDict, or, with an index, an IterableDataset.
        column: Column or columns with the text.
        order: Splits of a DatasetDict; documents of earlier ones are kept before those of later
            ones. The default is test, validation and train, if they exist, then the others.
        index: Of an IterableDataset: each document that matches none of its documents goes through,
            and is stored in it; commit it afterwards if it is durable.
        options: Of `neardup.dedup`: similarity, distance, id, within, keep and others. Of an
            IterableDataset only `id`; without it the documents get numbers above those of the
            index. Its texts that are null or empty go through.

    Returns:
        The same kind of dataset, of the kept rows in their order; and what was decided, rows of a
        DatasetDict counted through the splits in that order. None of an IterableDataset, of which
        nothing was read yet.

    Raises:
        UsageError, DataError: As `neardup.dedup`; for a column or split that is missing.

    Example:
        >>> import datasets
        >>> ds = datasets.Dataset.from_dict({"text": ["one two", "One, two!", "three"]})
        >>> kept, result = dedup(ds)
        >>> kept["text"][:], result.summary.dropped
        (['one two', 'three'], 1)
    """
    if isinstance(dataset, datasets.IterableDataset):
        return _filtered(dataset, column, index, options), None
    if index is not None:
        raise UsageError("an index is for an IterableDataset: leave out index")
    if isinstance(dataset, datasets.Dataset):
        if order is not None:
            raise UsageError("order is for the splits of a DatasetDict: leave it out")
        result = dedup_table(_columns(dataset, column, options), text=column, **options)
        return dataset.select(np.flatnonzero(result.kept)), result
    if not isinstance(dataset, datasets.DatasetDict):
        kind = type(dataset).__name__
        raise UsageError(f"a {kind} is not a dataset: pass a Dataset or a DatasetDict")
    names = _ordered(list(dataset), order)
    tables = [_columns(dataset[name], column, options) for name in names]
    result = dedup_table(pa.concat_tables(tables, promote_options="permissive"), text=column,
                         **options)  # fmt: skip
    masks = dict(zip(names, np.split(result.kept, np.cumsum([len(x) for x in tables])[:-1]),
                     strict=True))  # fmt: skip
    kept = {name: split.select(np.flatnonzero(masks[name])) for name, split in dataset.items()}
    return datasets.DatasetDict(kept), result


def decontaminate(
    train: datasets.Dataset,
    against: datasets.Dataset | datasets.DatasetDict | Sequence[str],
    column: str = "text",
    against_column: str | None = None,
    **options: Any,
) -> tuple[datasets.Dataset, pa.Table]:
    """Leave out the documents of a dataset that contain a question of a benchmark.

    Args:
        train: The documents.
        against: The questions: a Dataset, all splits of a DatasetDict, or texts.
        column: Of the documents.
        against_column: Of the questions; by default that of the documents.
        options: Of `neardup.decontaminate`: share, run, workers.

    Returns:
        The dataset without these documents, and what was found: the table of
        `neardup.decontaminate`, questions counted through the splits, with a column `split`, null
        where there are none.

    Raises:
        UsageError: As `neardup.decontaminate`; for a column that is missing.

    Example:
        >>> import datasets
        >>> train = datasets.Dataset.from_dict({"text": ["Q: who wrote Hamlet?", "one two three"]})
        >>> clean, found = decontaminate(train, ["Who wrote Hamlet?"])
        >>> clean["text"][:], found["document"].to_pylist()
        (['one two three'], [0])
    """
    if not isinstance(train, datasets.Dataset):
        raise UsageError(f"a {type(train).__name__} is not a Dataset: pass one split")
    documents = _columns(train, column, {})[column]
    names, questions = _questions(against, column if against_column is None else against_column)
    findings = find_questions(documents, questions, **options)
    splits = pa.array(names, pa.string()).take(findings["question"].combine_chunks())
    keep = np.ones(len(train), np.bool_)
    keep[findings["document"].to_numpy()] = False
    return train.select(np.flatnonzero(keep)), findings.append_column("split", splits)


def _questions(against: Any, column: str) -> tuple[list[str | None], Any]:
    """The questions, and the split of each."""
    if isinstance(against, datasets.DatasetDict):
        parts = {name: _columns(split, column, {})[column] for name, split in against.items()}
        names: list[str | None] = [name for name, part in parts.items() for _ in range(len(part))]
        return names, pa.chunked_array(
            [chunk.cast(pa.large_string()) for part in parts.values() for chunk in part.chunks],
            pa.large_string(),
        )
    if isinstance(against, datasets.Dataset):
        return [None] * len(against), _columns(against, column, {})[column]
    return [None] * len(against), against


def _columns(
    dataset: datasets.Dataset, column: str | Sequence[str], options: dict[str, Any]
) -> pa.Table:
    """The named columns; the many chunks of a dataset with indices are joined."""
    names = named_columns(column, options, dataset.column_names)
    table: pa.Table = dataset.select_columns(names).with_format("arrow")[:]
    return table.combine_chunks()


def _ordered(names: list[str], order: Sequence[str] | None) -> list[str]:
    if order is None:
        return sorted(names, key=lambda x: _FIRST.index(x) if x in _FIRST else len(_FIRST))
    if sorted(order) != sorted(names):
        listed = ", ".join(names)
        raise UsageError(f"order is {', '.join(order)!r}: name each split once: {listed}")
    return list(order)


def _filtered(
    dataset: datasets.IterableDataset,
    column: str | Sequence[str],
    index: Index | None,
    options: dict[str, Any],
) -> datasets.IterableDataset:
    """The documents that match none of the index, yielded while the dataset is read."""
    if index is None:
        raise UsageError("an IterableDataset is read as it passes: pass the index to compare with")
    identity = options.pop("id", None)
    if options:
        raise UsageError(f"{', '.join(options)}: the index decides; of these only id can be given")
    columns = [column] if isinstance(column, str) else list(column)
    first = list[int]()
    """The number of the first document, known from the first batch on; it stays where the stream is
    read again."""

    def passes(batch: dict[str, list[Any]], numbers: list[int]) -> list[bool]:
        fields = zip(*(batch[name] for name in columns), strict=True)
        texts = [None if None in parts else "\n".join(parts) for parts in fields]
        if identity is None and not first:
            first.append(index.next_id)
        ids = [first[0] + each for each in numbers] if identity is None else batch[identity]
        states = index.add_new(ids, texts)["state"].to_pylist()
        return [state != "seen" for state in states]

    return dataset.filter(passes, with_indices=True, batched=True)
