"""The content of a report about a run whose features are still in memory."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.errors import UsageError
from neardup.pipeline.evidence.levels import Levels, curve, find_levels, lowest_threshold
from neardup.pipeline.evidence.pair_texts import PairMaker
from neardup.pipeline.report import ClusterGroup, ClusterShown, Matrix, PairShown, Report
from neardup.pipeline.report.model import size_classes
from neardup.pipeline.run.decision import Decision
from neardup.pipeline.run.rule import settings
from neardup.similarity.feature_sets import FeatureSets, similarities

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.documents.record_addresses import Addresses, ReferenceAddresses
    from neardup.pipeline.evidence.pair_texts import Values
    from neardup.pipeline.run.against import ReferenceIndex
    from neardup.pipeline.run.rule import Rule
    from neardup.pipeline.run.run_outputs import ReportOptions
    from neardup.pipeline.run.summary import Outcome
    from neardup.runtime.types import Flags

__all__ = [
    "Clusters",
    "Measured",
    "addresses_of",
    "gather",
    "run_with_references",
    "texts_with_references",
]

BORDER_PAIRS: Final = 20
MOST_REMOVED: Final = 10_000
"""The most rows of the list of dropped documents; the page's size may allow fewer."""
CLUSTERS_SHOWN: Final = 10
MOST_SOURCES: Final = 12
LARGE_SHARE: Final = 0.01
LARGE_SIZE: Final = 20
LOST_SHARE: Final = 0.9
LOST_DOCUMENTS: Final = 10
TEMPLATE_PAIRS: Final = 3
TEMPLATE_WORDS: Final = 8
TEMPLATE_CHARACTERS: Final = 120


def gather(
    run: Outcome,
    options: ReportOptions,
    texts_of: Callable[[set[int]], dict[int, str]],
    values_of: Callable[[set[str]], Values] | None = None,
) -> Report:
    """Measure, count and sample the content of a report.

    Args:
        run: The run.
        options: Of the report.
        texts_of: Gives the texts of documents, by their numbers.
        values_of: Gives the values of the options' fields, by names of documents.

    Raises:
        UsageError: If the report cannot begin at the requested threshold.
    """
    own, rule, documents = run.documents.own, run.rule, run.documents
    run = run_with_references(run)
    decision, sets = run.decision, documents.sets
    order = documents.order(run.choice.keep)
    lowest = lowest_threshold(rule, options.lowest)
    gathered = find_levels(sets, order, decision, rule, run.limits.workers, lowest)
    clusters, levels = Clusters(decision, gathered), gathered.first(own)
    measured = {
        title: [clusters.measure(int(at), sets, rule.measure) for at in chosen]
        for title, chosen in clusters.chosen(CLUSTERS_SHOWN, options.seed).items()
    }
    borders = _dropped_border(levels, run), _kept_border(levels, decision)
    links = [(*each.pair, each.weakest) for group in measured.values() for each in group]
    rows = {row for pair in (*borders[0], *borders[1], *links) for row in pair[:2]}
    addresses = addresses_of(run, own)
    kept = decision.kept
    maker = PairMaker(documents, texts_of(rows), addresses, options.fields, values_of, kept)
    groups = tuple(
        ClusterGroup(title, tuple(_shown(each, maker) for each in group))
        for title, group in measured.items()
    )
    dropped_border, kept_border = (tuple(maker.pair(*pair) for pair in side) for side in borders)
    matrix = _matrix(run)
    dropped, sizes = ~decision.kept[:own], np.diff(sets.offsets)
    same = (levels.similarity >= 1) & (sizes[:own] == sizes[decision.kept_by[:own]])
    equal = int((dropped & same).sum())
    nbytes = documents.text_bytes
    pairs = [*dropped_border, *(each.pair for group in groups for each in group.clusters)]
    return Report(
        read=dropped.size + run.rejected,
        kept=own - int(dropped.sum()),
        equal=equal,
        near=int(dropped.sum()) - equal,
        rejected=run.rejected,
        empty=int((sizes[:own] == 0).sum()),
        clusters=int(clusters.names.size),
        text_bytes=(int(nbytes.sum()), int(nbytes[dropped].sum())),
        threshold=levels.threshold,
        measure=rule.measure,
        policy=run.choice.policy,
        curve=curve(levels),
        joined=levels.joined,
        dropped_border=dropped_border,
        kept_border=kept_border,
        sizes=clusters.histogram(),
        groups=groups,
        warnings=tuple(_warnings(clusters, dropped.size, matrix, pairs)),
        matrix=matrix,
        facts=tuple(_facts(rule, run.choice.policy, levels)),
        settings=tuple(_settings(run)),
        left_out=tuple(_left_out(levels, clusters, dropped)),
        command=options.command,
        inputs=documents.addresses.names,
        changed=_last_change(documents.addresses.names),
        removed=_removed(levels, decision, addresses),
    )


def _removed(
    levels: Levels, decision: Decision, addresses: Addresses | ReferenceAddresses
) -> tuple[tuple[float, str, str], ...]:
    """The dropped documents, the least similar first, each with its kept one."""
    dropped = np.flatnonzero(~decision.kept)
    rows = dropped[np.argsort(levels.similarity[dropped], kind="stable")[:MOST_REMOVED]]
    sides = [addresses.of(each).to_pylist() for each in (decision.kept_by[rows], rows)]
    documents = zip(levels.similarity[rows].tolist(), *sides, strict=True)
    return tuple((score, str(one), str(other)) for score, one, other in documents)


def _last_change(names: tuple[str, ...]) -> str:
    """The date of the newest input, in UTC, so that every report about it is the same."""
    times = []
    for name in names:
        with suppress(OSError, ValueError):
            times.append(Path(name).stat().st_mtime)
    return f"{datetime.fromtimestamp(max(times), UTC):%-d %B %Y}" if times else ""


def _shown(each: Measured, maker: PairMaker) -> ClusterShown:
    return ClusterShown(
        maker.name(each.name),
        each.size,
        each.weakest,
        each.diameter,
        each.compared,
        each.features,
        maker.pair(*each.pair, each.weakest),
    )


def _dropped_border(levels: Levels, run: Outcome) -> list[tuple[int, int, float]]:
    """The least similar pairs of an earlier document and a dropped one, with their similarity."""
    dropped = np.flatnonzero(~run.decision.kept)
    partner, score = run.decision.kept_by, levels.similarity
    if run.choice.policy == "components" and levels.joined:
        partner, score = levels.nearest, levels.score
        dropped = dropped[partner[dropped] != dropped]
    rows = dropped[np.argsort(score[dropped], kind="stable")[:BORDER_PAIRS]]
    return [(int(partner[row]), int(row), float(score[row])) for row in rows]


def _kept_border(levels: Levels, decision: Decision) -> list[tuple[int, int, float]]:
    """The most similar pairs below the threshold; each earlier document once."""
    if not levels.joined:
        return []
    score = levels.score
    near = (score > 0) & (score < levels.threshold)
    kept = np.flatnonzero(decision.kept[: score.size] & near)
    pairs: dict[int, tuple[int, int, float]] = {}
    for row in kept[np.argsort(-score[kept], kind="stable")].tolist():
        earlier = int(levels.nearest[row])
        pairs.setdefault(earlier, (earlier, row, float(score[row])))
        if len(pairs) == BORDER_PAIRS:
            break
    return list(pairs.values())


def _matrix(run: Outcome) -> Matrix | None:
    """The number of documents that each source lost to each other, if there are several."""
    numbers = run.documents.groups
    names = ["(none)" if name is None else name for name in run.documents.group_names]
    field = f"values of {run.field}"
    if numbers is None:
        numbers, names = run.documents.addresses.sources()
        field = "inputs"
    if run.decision.references is not None:
        offset = run.decision.kept_by.size - numbers.size
        numbers = np.concatenate([numbers, np.full(offset, len(names))])
        names = [*names, "the index"]
    sizes = np.bincount(numbers, minlength=len(names))
    if np.count_nonzero(sizes) < 2:
        return None
    first = np.argsort(-sizes, kind="stable")
    place = np.full(len(names), MOST_SOURCES - 1)
    top = first if len(names) <= MOST_SOURCES else first[: MOST_SOURCES - 1]
    place[top] = np.arange(top.size)
    count = min(len(names), MOST_SOURCES)
    shown = [names[at] for at in top]
    if len(names) > MOST_SOURCES:
        shown.append(f"{len(names) - top.size:,} others")
    at = place[numbers]
    dropped = np.flatnonzero(~run.decision.kept)
    cells = at[dropped] * count + at[run.decision.kept_by[dropped]]
    counts = np.bincount(cells, minlength=count * count).reshape(count, count)
    documents = np.bincount(at, minlength=count)
    return Matrix(
        field, tuple(shown), tuple(documents.tolist()), tuple(map(tuple, counts.tolist()))
    )


def _warnings(
    clusters: Clusters, documents: int, matrix: Matrix | None, pairs: list[PairShown | None]
) -> list[str]:
    messages = []
    large = clusters.sizes[clusters.sizes >= max(LARGE_SIZE, LARGE_SHARE * documents)]
    for size in sorted(large.tolist(), reverse=True)[:3]:
        share = 100 * size / documents
        messages.append(
            f"One cluster has {size:,} documents, {share:.1f}% of all: is it a template?"
        )
    if matrix is not None:
        for name, count, line in zip(matrix.names, matrix.documents, matrix.dropped, strict=True):
            if count >= LOST_DOCUMENTS and sum(line) > LOST_SHARE * count:
                messages.append(f"{name[:100]} lost {sum(line):,} of its {count:,} documents.")
    runs = {pair.names: pair.longest for pair in pairs if pair is not None}
    heads = Counter(
        run[:TEMPLATE_CHARACTERS] for run in runs.values() if len(run.split()) >= TEMPLATE_WORDS
    )
    for head, number in heads.most_common(3):
        if number >= TEMPLATE_PAIRS:
            messages.append(f"{number} of the pairs below share a run that begins: “{head}”")
    return messages


def _facts(rule: Rule, policy: str, levels: Levels) -> list[tuple[str, str]]:
    match = rule.match
    facts = []
    if rule.by_features:
        facts.append(("found", f"every match at {rule.measure} {match.similarity:g} or more"))
        facts.append(("verified", "every match, on all features of both documents; none skipped"))
    else:
        facts.append(("found", f"every pair within {rule.distance} bits"))
        facts.append(("verified", "nothing: fingerprints decide; similarities here are for you"))
    if levels.joined:
        facts.append(
            ("searched", f"down to {levels.lowest:g}: {levels.work.candidates:,} pairs measured")
        )
    facts.append(
        ("policy", "greedy: a document is dropped only if it matches a kept one")
        if policy == "greedy"
        else ("policy", "components: one is kept of each transitive group")
    )
    return facts


def _settings(run: Outcome) -> list[tuple[str, str]]:
    names = ("similarity", "measure", "distance", "keep", "recipe", "digest")
    every = settings(run.rule, run.choice)
    return [(name, str(every[name])[:400]) for name in names if every[name] is not None]


def _left_out(levels: Levels, clusters: Clusters, dropped: Flags) -> list[str]:
    sentences = []
    if levels.missed:
        sentences.append(
            f"The search below the threshold stopped after {levels.work.candidates:,} pairs:"
            f" {levels.missed:,} documents were not compared there, so more may match than shown."
        )
    if (count := int(dropped.sum())) > BORDER_PAIRS:
        sentences.append(
            f"Of {count:,} dropped documents the {BORDER_PAIRS} least similar are shown."
        )
    if clusters.names.size > CLUSTERS_SHOWN:
        sentences.append(
            f"Of {clusters.names.size:,} clusters the {CLUSTERS_SHOWN} largest, loosest and as many"
            " random ones are shown."
        )
    return sentences


def run_with_references(run: Outcome) -> Outcome:
    """The run with all documents of its index after its own; these are kept and match nothing.

    Raises:
        UsageError: If the index's documents did not take part in the search.
    """
    decision = run.decision
    references = decision.references
    if references is None:
        return run
    if references.every is None or references.places is None:
        raise UsageError(
            "the report needs an index of fingerprints with --store features or text, and a run"
            " that has not been decided before: leave out --report"
        )
    n = decision.kept_by.size
    theirs = np.arange(n, n + len(references.every))
    kept_by = decision.kept_by.copy()
    beyond = kept_by >= n
    kept_by[beyond] = n + references.places[kept_by[beyond] - n]
    kept_by = np.concatenate([kept_by, theirs])
    similarity = decision.similarity
    if similarity is not None:
        similarity = np.concatenate([similarity, np.ones(theirs.size)])
    return replace(run, decision=Decision(kept_by, kept_by, similarity, references))


def addresses_of(run: Outcome, own: int) -> Addresses | ReferenceAddresses:
    """The addresses of the run's `own` documents and of its index's."""
    references, addresses = run.decision.references, run.documents.addresses
    return (
        addresses if references is None or not own else addresses.with_references(references.every)
    )


def texts_with_references(
    texts_of: Callable[[set[int]], dict[int, str]],
    reference: ReferenceIndex | None,
    decision: Decision,
) -> Callable[[set[int]], dict[int, str]]:
    """A function for texts by number, of the index too if it stores them."""
    references, own = decision.references, decision.kept_by.size
    every = None if references is None else references.every

    def with_references(rows: set[int]) -> dict[int, str]:
        texts = texts_of({row for row in rows if row < own})
        beyond = sorted(row for row in rows if row >= own)
        if reference is not None and every is not None and beyond:
            ids = [every[row - own].as_py() for row in beyond]
            pairs = zip(beyond, reference.texts(ids), strict=True)
            texts |= {row: text for row, text in pairs if text is not None}
        return texts

    return with_references


MOST_COMPARED: Final = 32
"""Documents of a cluster whose pairs are all measured for its diameter."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One cluster; see `ClusterShown`."""

    name: int
    size: int
    weakest: float
    diameter: float
    compared: int
    features: tuple[int, int]
    pair: tuple[int, int]


class Clusters:
    """The clusters of two documents or more.

    Args:
        decision: The run's decision.
        levels: With the similarity of each dropped document and the kept one.

    Attributes:
        names: int64 (c,): the document that names each cluster.
        sizes: int64 (c,): the number of its documents.
        weakest: float64 (c,): its least similarity of a dropped document and its kept one.
    """

    def __init__(self, decision: Decision, levels: Levels) -> None:
        """Count and measure."""
        self._decision, self._levels = decision, levels
        label, dropped = decision.label, np.flatnonzero(~decision.kept)
        counts = np.bincount(label, minlength=label.size)
        self.names = np.flatnonzero(counts > 1)
        self.sizes = counts[self.names]
        least = np.ones(label.size)
        np.minimum.at(least, label[dropped], levels.similarity[dropped])
        self.weakest = least[self.names]

    def histogram(self) -> tuple[tuple[int, int, int], ...]:
        """(least, most, clusters) of each class of sizes: 2, 3, 4 to 7, 8 to 15, and so on."""
        return size_classes(self.sizes)

    def measure(self, at: int, sets: FeatureSets, measure: str) -> Measured:
        """Measure cluster number `at`."""
        name = int(self.names[at])
        members = np.flatnonzero(self._decision.label == name)
        dropped = members[~self._decision.kept[members]]
        worst = int(dropped[np.argmin(self._levels.similarity[dropped])])
        step = -(-members.size // MOST_COMPARED)
        some = members[::step]
        left, right = np.triu_indices(some.size, 1)
        diameter: Any = similarities(sets, some[left], some[right], measure).min(initial=1.0)
        features = np.diff(sets.offsets)[members]
        return Measured(
            name,
            int(members.size),
            float(self.weakest[at]),
            float(min(diameter, self.weakest[at])),
            int(some.size),
            (int(features.min()), int(features.max())),
            (int(self._decision.kept_by[worst]), worst),
        )

    def chosen(self, most: int, seed: int) -> dict[str, Any]:
        """Numbers of clusters: the largest, the loosest, and random ones."""
        largest = np.argsort(-self.sizes, kind="stable")[:most]
        loosest = np.argsort(self.weakest, kind="stable")[:most]
        count = min(most, self.names.size)
        random = np.random.default_rng(seed).choice(self.names.size, count, replace=False)
        return {
            "Largest": largest,
            "Loosest": loosest,
            f"Random, seed {seed}": np.sort(random),
        }
