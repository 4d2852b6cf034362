"""Two documents side by side: the features that they share, and their words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from neardup.fingerprinting.explanation import word_diff
from neardup.fingerprinting.fingerprints import codes_of_texts, feature_hashes
from neardup.fingerprinting.values import distance
from neardup.pipeline.report import PairShown
from neardup.similarity.feature_sets import FeatureSets, similarities

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from neardup.documents import Batch, ReadOptions, Source
    from neardup.documents.record_addresses import Addresses, ReferenceAddresses
    from neardup.fingerprinting.recipe import Recipe
    from neardup.pipeline.run.read_documents import Documents
    from neardup.runtime.types import Flags

__all__ = [
    "MOST_CHARACTERS",
    "PairMaker",
    "compared_fields",
    "pair_of_texts",
    "texts_at",
    "texts_in",
]

MOST_CHARACTERS: Final = 20_000
"""Characters of each text that are compared."""

MOST_SHOWN: Final = 9_000
"""Characters of a pair's words on the page."""

MOST_OF_A_RUN: Final = 1_200
MOST_OF_A_NAME: Final = 400
_NONE: Final = np.zeros(0, np.uint64)
Values = dict[str, tuple[str | None, ...]]


class PairMaker:
    """Makes the view of pairs of documents.

    Args:
        documents: With their features.
        texts: Texts by number, of the shown documents.
        addresses: Addresses, if not the documents' own.
        fields: Names of the fields that are shown next to the texts.
        values_of: Returns the values of these fields, by names of documents.
        kept: Which documents were kept, if there is a decision.
    """

    def __init__(
        self,
        documents: Documents,
        texts: Mapping[int, str],
        addresses: Addresses | ReferenceAddresses | None = None,
        fields: Sequence[str] = (),
        values_of: Callable[[set[str]], Values] | None = None,
        kept: Flags | None = None,
    ) -> None:
        """Take the documents and their texts."""
        self._kept = kept
        self._documents, self._texts = documents, texts
        self._addresses = addresses or documents.addresses
        self._fields, self._values = fields, dict[str, tuple[str | None, ...]]()
        if values_of is not None and texts:
            rows = np.array(sorted(texts), np.int64)
            self._values |= values_of({str(x) for x in self._addresses.of(rows).to_pylist()})

    def name(self, row: int) -> str:
        """The id or address of a document, shortened."""
        return str(self._addresses.of(np.array([row]))[0].as_py())[:MOST_OF_A_NAME]

    def pair(self, earlier: int, later: int, similarity: float) -> PairShown:
        """Two documents by their numbers."""
        both = np.array([earlier, later], np.int64)
        first, second = self._documents.features_of(both)
        shared = int(np.intersect1d(first, second).size)
        codes = self._documents.codes[both]
        texts = self._texts.get(earlier), self._texts.get(later)
        runs, longest, note = _words(*texts)
        names = [str(x) for x in self._addresses.of(both).to_pylist()]
        return PairShown(
            (names[0][:MOST_OF_A_NAME], names[1][:MOST_OF_A_NAME]),
            float(similarity),
            int(distance(codes[:1], codes[1:])[0]),
            shared,
            (first.size - shared, second.size - shared),
            runs,
            longest,
            note,
            compared_fields(self._fields, *(self._values.get(name) for name in names)),
            (self._verdict(earlier), self._verdict(later)),
        )

    def _verdict(self, row: int) -> str:
        if self._kept is None:
            return ""
        return "kept" if self._kept[row] else "dropped"


def compared_fields(
    fields: Sequence[str],
    first: tuple[str | None, ...] | None,
    second: tuple[str | None, ...] | None,
) -> tuple[tuple[str, str | None, str | None], ...]:
    """The name of each field, and its value in both documents; None where one has none.

    Example:
        >>> compared_fields(["Email"], ("a@b.org",), None)
        (('Email', 'a@b.org', None),)
    """
    none = (None,) * len(fields)
    return tuple(zip(fields, first or none, second or none, strict=True))


def pair_of_texts(
    names: tuple[str, str],
    texts: tuple[str | None, str | None],
    recipe: Recipe,
    measure: str = "jaccard",
    similarity: float | None = None,
    fields: tuple[tuple[str, str | None, str | None], ...] = (),
) -> PairShown:
    """The view of two texts from any source.

    Args:
        names: Their ids or addresses.
        texts: Their texts; None if unknown.
        recipe: Of their features and fingerprints.
        measure: Of their similarity.
        similarity: Theirs, if it is known already.
        fields: As in `compared_fields`.
    """
    runs, longest, note = _words(*texts)
    if texts[0] is None or texts[1] is None:
        return PairShown(names, similarity or 0.0, 0, 0, (0, 0), runs, longest, note, fields)
    first, second = (feature_hashes(text, recipe) if text else _NONE for text in texts)
    shared = int(np.intersect1d(first, second).size)
    if similarity is None:
        offsets = np.array([0, first.size, first.size + second.size])
        sets = FeatureSets(np.concatenate([first, second]), offsets, np.zeros((2, 1), np.uint64))
        similarity = float(similarities(sets, np.array([0]), np.array([1]), measure)[0])
    codes = np.ma.getdata(codes_of_texts(list(texts), recipe))
    apart = int(distance(codes[:1], codes[1:])[0])
    only = first.size - shared, second.size - shared
    return PairShown(names, similarity, apart, shared, only, runs, longest, note, fields)


def texts_at(sources: Sequence[Source], read: ReadOptions, rows: set[int]) -> dict[int, str]:
    """The texts of some documents, by number, with one character more than is compared.

    The inputs are read once more, up to the last of them.
    """
    return texts_in((batch for source in sources for batch in source.batches(read)), rows)


def texts_in(batches: Iterable[Batch], rows: set[int]) -> dict[int, str]:
    """As `texts_at`, from batches."""
    texts: dict[int, str] = {}
    sorted_rows = np.array(sorted(rows), np.int64)
    begin = 0
    for batch in batches:
        first, last = np.searchsorted(sorted_rows, (begin, begin + len(batch.texts)))
        for row in sorted_rows[first:last].tolist():
            texts[row] = batch.texts[row - begin].as_py()[: MOST_CHARACTERS + 1]
        begin += len(batch.texts)
        if last == sorted_rows.size:
            break
    return texts


def _words(
    first: str | None, second: str | None
) -> tuple[tuple[tuple[str, str], ...] | None, str, str]:
    """The runs of words, the longest equal run, and a note on what was left out."""
    if first is None or second is None:
        return None, "", "The inputs do not hold both texts."
    notes = []
    if max(len(first), len(second)) > MOST_CHARACTERS:
        notes.append(f"Only the first {MOST_CHARACTERS:,} characters of each text are compared.")
    diff = word_diff(first[:MOST_CHARACTERS], second[:MOST_CHARACTERS])
    longest = max((run.text for run in diff.runs if run.kind == "equal"), key=len, default="")
    runs, used = [], 0
    shown = diff.runs if len(diff.runs) == 1 else diff.brief(40, 160)
    for run in shown:
        text = run.text
        if len(text) > MOST_OF_A_RUN:
            half = MOST_OF_A_RUN // 2
            text = f"{text[:half]} … {text[-half:]}"
        if used + len(text) > MOST_SHOWN:
            notes.append("Further words are left out.")
            break
        used += len(text)
        runs.append((run.kind, text))
    if "".join(text for _, text in runs) != "".join(run.text for run in diff.runs):
        notes.append("… stands for words that are left out.")
    return tuple(runs), longest.strip()[:MOST_OF_A_RUN], " ".join(notes)
