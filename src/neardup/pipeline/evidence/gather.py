"""The record that a report draws, of a run whose features are still at hand."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.pipeline.evidence.clusters import Clusters, Measured
from neardup.pipeline.evidence.levels import Levels, curve, find_levels, lowest_threshold
from neardup.pipeline.evidence.pairs import PairMaker
from neardup.pipeline.evidence.references import addresses_of, beside_references
from neardup.pipeline.report import ClusterGroup, ClusterShown, Matrix, PairShown, Report
from neardup.pipeline.run.rule import settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.pipeline.evidence.decided import Decided
    from neardup.pipeline.run.decision import Decision
    from neardup.pipeline.run.outputs import ReportOptions
    from neardup.pipeline.run.rule import Rule

__all__ = ["gather"]

BORDER_PAIRS: Final = 20
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
    run: Decided, options: ReportOptions, texts_of: Callable[[set[int]], dict[int, str]]
) -> Report:
    """Measure, count and sample what a report shows.

    Args:
        run: The run.
        options: What to show.
        texts_of: Gives the texts of documents, by their numbers.

    Raises:
        UsageError: If the report cannot begin at the threshold asked for.
    """
    own, rule, documents = run.documents.own, run.rule, run.documents
    run = beside_references(run)
    decision, sets = run.decision, documents.sets
    order = documents.order(run.choice.keep)
    lowest = lowest_threshold(rule, options.lowest)
    found = find_levels(sets, order, decision, rule, run.limits.workers, lowest)
    clusters, levels = Clusters(decision, found), found.first(own)
    measured = {
        title: [clusters.measure(int(at), sets, rule.measure) for at in chosen]
        for title, chosen in clusters.chosen(CLUSTERS_SHOWN, options.seed).items()
    }
    borders = _dropped_border(levels, run), _kept_border(levels, decision)
    links = [(*each.pair, each.weakest) for group in measured.values() for each in group]
    rows = {row for pair in (*borders[0], *borders[1], *links) for row in pair[:2]}
    maker = PairMaker(documents, texts_of(rows), addresses_of(run, own))
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
    )


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


def _dropped_border(levels: Levels, run: Decided) -> list[tuple[int, int, float]]:
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
    kept = decision.kept[: score.size] & (score > 0) & (score < levels.threshold)
    kept = np.flatnonzero(kept)
    pairs: dict[int, tuple[int, int, float]] = {}
    for row in kept[np.argsort(-score[kept], kind="stable")].tolist():
        earlier = int(levels.nearest[row])
        pairs.setdefault(earlier, (earlier, row, float(score[row])))
        if len(pairs) == BORDER_PAIRS:
            break
    return list(pairs.values())


def _matrix(run: Decided) -> Matrix | None:
    """Which source lost documents to which, if there are several."""
    numbers = run.documents.groups
    names = ["(none)" if name is None else name for name in run.documents.group_names]
    field = f"values of {run.field}"
    if numbers is None:
        numbers, names = run.documents.addresses.sources()
        field = "inputs"
    if run.decision.references is not None:
        known = run.decision.kept_by.size - numbers.size
        numbers = np.concatenate([numbers, np.full(known, len(names))])
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
    found = np.bincount(cells, minlength=count * count).reshape(count, count)
    documents = np.bincount(at, minlength=count)
    return Matrix(field, tuple(shown), tuple(documents.tolist()), tuple(map(tuple, found.tolist())))


def _warnings(
    clusters: Clusters, documents: int, matrix: Matrix | None, pairs: list[PairShown | None]
) -> list[str]:
    found = []
    large = clusters.sizes[clusters.sizes >= max(LARGE_SIZE, LARGE_SHARE * documents)]
    for size in sorted(large.tolist(), reverse=True)[:3]:
        share = 100 * size / documents
        found.append(f"One cluster has {size:,} documents, {share:.1f}% of all: is it a template?")
    if matrix is not None:
        for name, count, line in zip(matrix.names, matrix.documents, matrix.dropped, strict=True):
            if count >= LOST_DOCUMENTS and sum(line) > LOST_SHARE * count:
                found.append(f"{name[:100]} lost {sum(line):,} of its {count:,} documents.")
    runs = {pair.names: pair.longest for pair in pairs if pair is not None}
    heads = Counter(
        run[:TEMPLATE_CHARACTERS] for run in runs.values() if len(run.split()) >= TEMPLATE_WORDS
    )
    for head, number in heads.most_common(3):
        if number >= TEMPLATE_PAIRS:
            found.append(f"{number} of the pairs below share a run that begins: “{head}”")
    return found


def _facts(rule: Rule, policy: str, levels: Levels) -> list[tuple[str, str]]:
    match = rule.match
    facts = []
    if rule.by_features:
        facts.append(
            ("found", f"every match at {rule.measure} {match.similarity:g} or more")
            if rule.recall == 1
            else ("found", f"at least {rule.recall:g} of the pairs exactly at the threshold")
        )
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


def _settings(run: Decided) -> list[tuple[str, str]]:
    names = ("similarity", "measure", "distance", "recall", "keep", "recipe", "digest")
    every = settings(run.rule, run.choice, run.documents.own)
    return [(name, str(every[name])[:400]) for name in names if every[name] is not None]


def _left_out(levels: Levels, clusters: Clusters, dropped: Any) -> list[str]:
    found = []
    if levels.missed:
        found.append(
            f"The search below the threshold stopped after {levels.work.candidates:,} pairs:"
            f" {levels.missed:,} documents were not compared there, so more may match than shown."
        )
    if (count := int(dropped.sum())) > BORDER_PAIRS:
        found.append(f"Of {count:,} dropped documents the {BORDER_PAIRS} least similar are shown.")
    if clusters.names.size > CLUSTERS_SHOWN:
        found.append(
            f"Of {clusters.names.size:,} clusters the {CLUSTERS_SHOWN} largest, loosest and as many"
            " random ones are shown."
        )
    return found
