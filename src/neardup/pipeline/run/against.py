"""Compare a run's documents with those of a reference index: `dedup --against`.

The index's documents have the highest priority and are always kept: a document is dropped if it
matches one of them, or a kept one of its own run. So batch after batch, each added to the index,
gives the result of one run over all batches.

An index by similarity is queried, and so is one by distance if fingerprints alone decide: the cost
is that of the run's documents. By features, the documents of an index by distance take part in the
exact join, with the features or texts that it stores; this takes time linear in the index.

A run sees one commit of the index, also while a service writes to it, including versions of
documents that the run itself replaces. The index of a service is queried over HTTP
(`ServiceIndex`), with the same result if no other client writes to it.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import DataError, RecipeError, UsageError
from neardup.fingerprinting.fingerprints import Fingerprinter
from neardup.fingerprinting.sets_of_texts import fingerprints_of_sets
from neardup.fingerprinting.values import distance
from neardup.index.hits import ABSENT, OTHER, SAME
from neardup.index.incoming import sorted_sets
from neardup.index.memory_index import Index
from neardup.pipeline.run.decision import Decision, References
from neardup.pipeline.run.matching import match
from neardup.pipeline.run.rule import Limits
from neardup.pipeline.run.service_index import ServiceIndex, is_service
from neardup.runtime.storage.spool import FeatureSpool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from neardup.documents import ReadOptions
    from neardup.fingerprinting.recipe import Recipe
    from neardup.index import DurableIndex
    from neardup.pipeline.run.read_documents import Documents
    from neardup.pipeline.run.rule import Choice, Rule
    from neardup.runtime.types import Codes, Flags, Hashes, Rows

__all__ = ["Against", "ReferenceIndex", "read_as"]

QUERIES_A_BATCH: Final = 1 << 16
Versions: TypeAlias = "npt.NDArray[np.int8]"


@dataclass(frozen=True, slots=True)
class Against:
    """The index of a run, and how the run uses it.

    Args:
        folder: Of the index, or the address of its service.
        update: Add the kept documents to it, once the outputs are there.
        own_ids: "seen": a document is compared with the stored version of its own id like with any
            other. "keep": it is not, and an unchanged document is only compared with documents of
            the run.
        only: The run's documents are not compared with each other.
        files: What the index was made of for the run, if it was: they name it in messages.
        wait: Seconds to wait for another process that writes to it.

    Raises:
        UsageError: For another `own_ids`.
    """

    folder: str
    update: bool = False
    own_ids: str = "seen"
    only: bool = False
    files: tuple[str, ...] = ()
    wait: float = 0.0

    def __post_init__(self) -> None:
        """Refuse unknown values."""
        if self.own_ids not in {"seen", "keep"}:
            raise UsageError(f"own_ids is {self.own_ids!r:.60}: use 'seen' or 'keep'")


class ReferenceIndex:
    """The index of a run.

    Args:
        against: The options.
        rule: Of the run.
        choice: Of the run.
        read: Of the run.
        limits: Of the run.

    Raises:
        UsageError: If the index does not store what the matching needs, was made for a
            smaller distance, or cannot serve such a run.
        RecipeError: If it has another recipe.
        FileError, DataError, ServiceError: As DurableIndex.open, or ServiceIndex.
    """

    def __init__(
        self,
        against: Against,
        rule: Rule,
        choice: Choice,
        read: ReadOptions,
        limits: Limits | None = None,
    ) -> None:
        """Open the index."""
        self._against, self._rule, self._choice = against, rule, choice
        self._limits = limits or Limits()
        self.has_ids, self.own_ids = read.id is not None, against.own_ids
        self.service: ServiceIndex | None = None
        self._seen: Any
        if is_service(against.folder):
            self.service = ServiceIndex(against.folder, update=against.update)
            self.index: Any = self.service
            self._seen = nullcontext()
        else:
            self.index = _opened(against)
            self._seen = self.index.snapshot()
        self.is_similar = self.index.by == "similarity"
        try:
            self._check(read)
        except BaseException:
            self.close()
            raise
        # Documents that others add to a service do not stop a resumed run.
        counts = {"documents": 0, "added": 0}
        if self.service is None:
            counts = {"documents": len(self._seen), "added": self._seen.added}
        self.facts = {
            "path": ", ".join(against.files) or against.folder,
            **counts,
            "own_ids": self.own_ids,
        }
        if against.only:
            self.facts["only"] = True

    @property
    def updates(self) -> bool:
        """Whether the kept documents are added."""
        return self._against.update

    @property
    def keeps_own(self) -> bool:
        """Whether a document is not compared with the stored version of its own id."""
        return self.own_ids == "keep"

    @property
    def needs_features(self) -> bool:
        """Whether the features of the run's documents are stored."""
        return self._against.update and (self.is_similar or self.index.store == "features")

    def reading(self, read: ReadOptions) -> ReadOptions:
        """The options of the run, for texts of HTML as the index takes them; see `read_as`."""
        return read_as(self.index.extract, read)

    def close(self) -> None:
        """Close the index; uncommitted changes are dropped."""
        if self.service is None:
            self._seen.close()
            if self._against.update:
                self.index.rollback()
        self.index.close()

    def match(self, documents: Documents) -> tuple[Documents, Decision]:
        """Decide for every document of the run; the decision has the references that it names.

        Returns:
            The documents, followed by those of the index if these took part, and the decision.
        """
        with self._seen:  # which frees documents removed from the index
            if self.is_similar:
                return documents, self._by_similarity(documents)
            if self._rule.by_features:
                return self._by_features(documents)
            return documents, self._by_fingerprints(documents)

    def _match(self, documents: Documents, decided: Rows | None = None) -> Decision:
        return match(documents, self._rule, self._choice, self._limits, decided=decided)

    def _by_fingerprints(self, documents: Documents) -> Decision:
        table, own = self._first(documents)
        rows = table["row"].to_numpy()
        rest = np.ma.MaskedArray(documents.codes, np.ma.getmaskarray(documents.values).copy())
        rest[slice(None) if self._against.only else rows] = np.ma.masked
        decision = self._match(replace(documents, values=rest))
        named = table["id"].combine_chunks().dictionary_encode()
        kept_by = decision.kept_by.copy()
        kept_by[rows] = len(documents) + named.indices.to_numpy()
        references = References(named.dictionary, self._fingerprints(named.dictionary))
        return Decision(kept_by, kept_by, decision.similarity, references, own=own)

    def _by_similarity(self, documents: Documents) -> Decision:
        table, own = self._first(documents)
        matched = table["row"].to_numpy()
        decided = np.arange(len(documents)) if self._against.only else matched
        decision = self._match(documents, decided)
        named = table["id"].combine_chunks().dictionary_encode()
        assert decision.similarity is not None  # noqa: S101  # it is measured by features
        kept_by, similarity = decision.kept_by.copy(), decision.similarity.copy()
        kept_by[matched] = len(documents) + named.indices.to_numpy()
        similarity[matched] = table["similarity"].to_numpy()
        codes = self._fingerprints(named.dictionary)
        references = References(named.dictionary.cast(pa.large_string()), codes)
        return Decision(kept_by, kept_by, similarity, references, own=own)

    def _fingerprints(self, ids: pa.Array) -> Codes:
        """Fingerprints of matched documents; (n, 0) if features do not determine them."""
        if self.service is not None:
            return self.service.fingerprints_by_id(ids)
        if not self.is_similar:
            codes: Codes = self._seen.fingerprints_by_id(ids)
            return codes
        kept = self._seen.sets_by_id(ids)
        return fingerprints_of_sets(kept.features, kept.offsets, self._rule.recipe)

    def _first(self, documents: Documents) -> tuple[pa.Table, Versions]:
        """The first match of each document in the index, and the state of its own id there.

        It works in batches, in bounded memory.
        """
        rule, values = self._rule, documents.values
        least: Any = rule.match.similarity if self.is_similar else rule.distance
        tables, versions = [], [np.empty(0, np.int8)]
        for begin in range(0, max(len(values), 1), QUERIES_A_BATCH):
            end = min(begin + QUERIES_A_BATCH, len(values))
            contents: Any = values[begin:end]
            if self.is_similar:
                contents = sorted_sets(*documents.feature_sets(begin, end))
            names = documents.addresses.of(np.arange(begin, end))
            ids, is_id = self._ids(names, values[begin:end])
            most = 2 if self.keeps_own else 1
            states, table = self._compared(ids, contents, least, most)
            own = self._own(states, is_id)
            if self.keeps_own:
                table = _but_own(table, names, own)
            rows = pa.array(table["row"].to_numpy() + begin)
            tables.append(table.set_column(0, "row", rows))
            versions.append(own)
        return pa.concat_tables(tables), np.concatenate(versions)

    def _compared(
        self, ids: pa.Array, contents: Any, least: Any, most: int
    ) -> tuple[Versions, pa.Table]:
        """The states of the own ids of some documents, and their first matches in the index."""
        if self.service is not None:
            return self.service.compared(ids, contents, least, most)
        plain = contents if self.is_similar else np.ma.getdata(contents)
        states: Versions = self._seen.versions(ids, plain)
        most = most if (states == OTHER).any() else 1
        return states, self._seen.first_within(contents, least, most)

    def versions(self, rows: Rows, documents: Documents) -> Versions:
        """The states in a service of the ids of some documents of the run that have tokens."""
        assert self.service is not None  # noqa: S101  # a folder tells by number what was added
        ids, is_id = self._ids(documents.addresses.of(rows), documents.values[rows])
        contents = documents.features_of(rows) if self.is_similar else documents.values[rows]
        return np.where(is_id, self.service.versions(ids, contents), ABSENT)

    def _ids(self, names: pa.Array, values: Any) -> tuple[pa.Array, Flags]:
        """The addresses of some documents as ids of the index, and whether each can be one.

        Args:
            names: Arrow strings: the addresses.
            values: Fingerprints, masked where a document is empty.
        """
        is_id = ~np.ma.getmaskarray(values)[:, 0]
        ids = self.index if self.service is not None else self._seen
        if ids.id_kind != "int":
            return names, is_id
        numbers = [_whole(name) for name in names.to_pylist()]
        is_id &= np.array([number is not None for number in numbers], np.bool_)
        return pa.array([number or 0 for number in numbers], pa.int64()), is_id

    def _own(self, states: Versions, is_id: Flags) -> Versions:
        """The state of the own id of each of some documents: see Decision.own."""
        return np.where(is_id & (self.has_ids | (states == SAME)), states, ABSENT)

    def _by_features(self, documents: Documents) -> tuple[Documents, Decision]:
        n = len(documents)
        ids: list[pa.Array] = []

        def parts() -> Iterator[tuple[Codes, list[Hashes]]]:
            for names, codes, features in self.documents():
                ids.append(names)
                yield codes, features

        whole = documents.followed_by(parts())
        decision = self._match(whole)
        every = pa.concat_arrays(ids).cast(pa.large_string()) if ids else pa.array([], pa.string())
        ids_of_run, is_id = self._ids(documents.addresses.of(np.arange(n)), documents.values)
        states = self._seen.versions(ids_of_run, np.ma.getdata(documents.values))
        own = self._own(states, is_id)
        if self.keeps_own and (own != ABSENT).any():
            decision = self._again(whole, decision, every, own)
        similarity = None if decision.similarity is None else decision.similarity[:n]
        kept_by = decision.kept_by[:n].copy()
        rows = np.flatnonzero(kept_by >= n)
        named, places = np.unique(kept_by[rows] - n, return_inverse=True)
        kept_by[rows] = n + places
        chosen = References(every.take(pa.array(named)), whole.codes[n + named], named, every)
        return whole, Decision(kept_by, kept_by, similarity, chosen, own=own)

    def _again(
        self, whole: Documents, decision: Decision, every: pa.Array, own: Versions
    ) -> Decision:
        """A decision about the run's and the index's documents, but without matches of own ids.

        Args:
            whole: The documents of both.
            decision: The decision with such matches.
            every: The ids of the index's documents.
            own: The states of the own ids of the run's documents.
        """
        n = whole.own
        matched = np.flatnonzero((decision.kept_by[:n] >= n) & (own != SAME))
        kept_by = decision.kept_by[matched] - n
        is_own = pc.equal(every.take(pa.array(kept_by)), whole.addresses.of(matched))
        rest = matched[np.array(is_own, np.bool_)]
        others = self._first_others(whole, rest)
        lost = np.setdiff1d(rest, np.array(list(others), np.int64))
        decided = np.setdiff1d(matched, lost)
        again = self._match(whole, np.append(decided, np.arange(n, len(whole))))
        assert again.similarity is not None and decision.similarity is not None  # noqa: S101, PT018
        again.kept_by[decided] = decision.kept_by[decided]
        again.similarity[decided] = decision.similarity[decided]
        for row, (place, score) in others.items():
            again.kept_by[row], again.similarity[row] = n + place, score
        return again

    def _first_others(self, whole: Documents, rows: Rows) -> dict[int, tuple[int, float]]:
        """The first match in the index other than that of the own id, for documents that have one.

        Args:
            whole: The run's documents and the index's.
            rows: The documents, which become an index; each other document is a query of it.

        Returns:
            The position in the index and the similarity, by row.
        """
        condition, codes, bits = self._rule.match, whole.codes, self._rule.recipe.bits
        changed = Index(similarity=condition.similarity, measure=condition.measure)
        changed.add(rows, whole.features_of(rows))
        names = dict(zip(rows.tolist(), whole.addresses.of(rows).to_pylist(), strict=True))
        first: dict[int, tuple[int, float]] = {}
        place = 0
        for ids, _, features in self.documents() if len(rows) else ():
            table = changed.query_batch([np.asarray(each) for each in features])
            for at, row, score in zip(*table.to_pydict().values(), strict=True):
                reference = place + at
                is_near = condition.distance is None or condition.distance >= distance(
                    codes[row], codes[whole.own + reference], bits
                )
                if row not in first and is_near and str(ids[at].as_py()) != names[row]:
                    first[row] = reference, score
            place += len(ids)
        return first

    def texts(self, ids: list[str]) -> list[str | None]:
        """The texts of some of its documents; None if it does not store texts."""
        if self.index.store != "text" or not ids:
            return [None] * len(ids)
        return list(self.index.contents(ids))

    def documents(self) -> Iterator[tuple[Any, Any, Any]]:
        """The reference documents, in batches: ids, fingerprints, and features if stored.

        Raises:
            UsageError: If the index is a service's.
        """
        if self.service is not None:
            raise UsageError(
                f"{self._against.folder} is a service, which does not send its index: give the"
                " folder or a backup of it"
            )
        for names, codes, contents in self._seen.documents():
            features: Any = None
            if self.is_similar:
                features = [codes.of(row) for row in range(codes.size)]
            elif self.index.store != "none":
                self._check_contents(names, contents)
                features = self._features(contents) if self.index.store == "text" else contents
            yield names, codes, features

    def _check_contents(self, names: pa.Array, contents: Sequence[object]) -> None:
        lost = next((i for i, each in enumerate(contents) if each is None), None)
        if lost is not None:
            raise DataError(
                f"{self._against.folder} keeps {self.index.store}, but none for"
                f" {names[lost].as_py()!r}: add that document again, or make the index again"
            )

    def _features(self, texts: list[str]) -> list[Any]:
        with (
            FeatureSpool(1 << 30) as spool,
            Fingerprinter(self._rule.recipe, self._limits.workers, spool) as fingerprinter,
        ):
            fingerprinter.add(pa.array(texts, pa.large_string()))
            fingerprinter.finish()
            features, offsets = spool.finish().copy(), fingerprinter.feature_offsets().tolist()
            return [features[begin:end] for begin, end in pairwise(offsets)]

    def _check(self, read: ReadOptions) -> None:
        index, rule, folder = self.index, self._rule, self._against.folder
        if index.recipe is None or index.recipe.digest != rule.recipe.digest:
            digest = "none" if index.recipe is None else index.recipe.digest
            raise RecipeError(
                f"{folder} has recipe {digest}, the run {rule.recipe.digest}: fingerprints of"
                " two recipes cannot be compared; give the options that the index was made with"
                f"{_preset_option(index.recipe)}"
            )
        if self._choice.policy != "greedy":
            raise UsageError(
                "--policy components joins all that matches: --against requires greedy"
            )
        if self.keeps_own and not self.has_ids:
            raise UsageError(
                "--own-ids keep requires --id FIELD: file:row says where a document was, not which"
            )
        if self._against.only and rule.by_features and not self.is_similar:
            raise UsageError(
                "--only-against compares by similarity, or by --distance without --verify: leave"
                " out --verify, or make an index with --similarity"
            )
        if read.within is not None:
            raise UsageError(f"--within {read.within}: {folder} does not know that field")
        if self.is_similar:
            self._check_similar(index, rule)
        elif rule.by_features and self.service is not None:
            raise UsageError(
                f"the index of {folder} is by distance, and features are compared where its folder"
                f" is: give --distance (up to {index.distance}) without --verify"
            )
        elif rule.by_features and index.store == "none":
            raise UsageError(
                f"{folder} keeps fingerprints only, from which no similarity can be computed: give"
                f" --distance (up to {index.distance}) without --verify, or make the index with"
                " --store features"
            )
        elif not rule.by_features and (rule.distance or 0) > index.distance:
            raise UsageError(
                f"--distance is {rule.distance}, but {folder} was made for {index.distance}"
            )

    def _check_similar(self, index: Any, rule: Rule) -> None:
        folder = self._against.folder
        if rule.distance is not None:
            raise UsageError(
                f"--distance is {rule.distance}, but {folder} is by similarity, from"
                f" {index.similarity}: leave it out, or make an index with --distance"
            )
        if rule.measure != index.measure:
            raise UsageError(
                f"--measure is {rule.measure}, but {folder} was made with {index.measure}"
            )
        if rule.match.similarity < index.similarity:
            raise UsageError(
                f"--similarity is {rule.match.similarity}, but {folder} was made for"
                f" {index.similarity}: ask for that or more, or make an index for less"
            )


def read_as(extract: str | None, read: ReadOptions) -> ReadOptions:
    """Options that read of HTML the part that an index compares.

    Args:
        extract: Of the index; None if it was made without.
        read: Options, which may name the same part.

    Raises:
        UsageError: If they name another part.
    """
    if extract is None:
        return read
    if read.extract not in {None, extract}:
        raise UsageError(
            f"--extract is {read.extract}, but the index was made with {extract}: leave it out"
        )
    return replace(read, extract=extract)


def _opened(against: Against) -> DurableIndex:
    from neardup.index.durable import DurableIndex

    return DurableIndex.open(
        against.folder, create=False, readonly=not against.update, wait=against.wait
    )


def _preset_option(recipe: Recipe | None) -> str:
    """The option that makes fingerprints as an index has them; empty if no single one does."""
    return "" if recipe is None or recipe.preset is None else f", such as --preset {recipe.preset}"


def _but_own(matches: pa.Table, names: pa.Array, own: Versions) -> pa.Table:
    """The first match of each row, without that of its own id; none for an unchanged row.

    Args:
        matches: Matches, rows ascending: row and id.
        names: Arrow strings: the rows' addresses.
        own: The states of their ids.
    """
    rows = matches["row"].to_numpy()
    is_own = pc.equal(matches["id"].cast(pa.large_string()), names.take(pa.array(rows)))
    keep = np.flatnonzero(~np.array(is_own, np.bool_) & (own[rows] != SAME))
    return matches.take(pa.array(keep[np.unique(rows[keep], return_index=True)[1]]))


def _whole(name: str) -> int | None:
    """The whole number of 64 signed bits that a text writes; None for other texts."""
    try:
        number = int(name)
    except ValueError:
        return None
    return number if str(number) == name and -(2**63) <= number < 2**63 else None
