"""Components of matches, and the kept documents of each: at once, or in rounds for a large one.

A component of more matches than one task takes is decided in rounds: by greedy keep a range of the
priority order at a time, each against what was kept before; a transitive group step by step
outwards from the one that is kept.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from neardup.errors import NeardupError
from neardup.spark.engine import Route
from neardup.spark.workers import components, decide_components, rounds

if TYPE_CHECKING:
    from neardup.spark.engine import Engine, Settings
    from neardup.spark.engine_session import Frame, Worker

__all__ = [
    "decided",
    "links_of",
    "outwards",
    "sampled",
    "similarity_of_copies",
    "stars",
    "with_copies",
]

MOST_ROUNDS: Final = 100
LINKS: Final = (
    "left long, right long, left_score double, right_score double, distance int,"
    " similarity double, equal boolean"
)


def links_of(edges: Frame, copies: Frame, settings: Settings) -> Frame:
    """LINKS of EDGES, and of COPIES with the documents that stand for them."""
    columns = ("left", "right", "left_score", "right_score", "distance", "similarity")
    same = copies.selectExpr(
        "stands AS left", "number AS right", "stands_score AS left_score", "score AS right_score",
        "0 AS distance", f"{similarity_of_copies(settings)} AS similarity", "true AS equal",
    )  # fmt: skip
    return edges.selectExpr(*columns, "false AS equal").unionByName(same)


def similarity_of_copies(settings: Settings) -> str:
    """The similarity of equal documents in SQL: null by distance."""
    return f"CAST({'1' if settings.by_features else 'NULL'} AS double)"


def decided(engine: Engine, links: Frame, settings: Settings) -> Frame:
    """Decide for every document of links (LINKS), by greedy keep: DECISIONS, kept.

    Raises:
        NeardupError: If the engine lost something.
    """
    decide = partial(decide_components.decide, keep=settings.keep)
    if links.count() <= engine.limits.edges:
        return engine.step(links, decide, decide_components.DECISIONS, to="one", keep="decisions")
    links = engine.keep(links, "links", LINKS)
    labelled = _labelled(engine, links)
    counts = labelled.groupBy("label").count().where(f"count > {engine.limits.edges}")
    large = [(row["label"], row["count"]) for row in counts.collect()]
    small = labelled
    if large:
        names = engine.session.createDataFrame([(label,) for label, _ in large], "label long")
        small = labelled.join(names, "label", "left_anti")
    to = Route(decide_components.members, decide_components.MEMBERS)
    decisions = engine.step(small, decide, decide_components.DECISIONS, to=to)
    for label, count in sorted(large):
        own = engine.keep(labelled.where(f"label = {label}").drop("label"), "large", LINKS)
        decisions = decisions.unionByName(_greedy(engine, own, count, settings))
    return engine.keep(decisions, "decisions", decide_components.DECISIONS)


def sampled(engine: Engine, frame: Frame, keep: str) -> list[tuple[float, int]]:
    """At most SAMPLED pairs of score and number of a frame, in order."""
    taken = engine.step(frame, rounds.sample, rounds.SAMPLE)
    rows = engine.step(taken, rounds.sample, rounds.SAMPLE, to="one").toArrow()
    return rounds.in_order(rows, keep)


def _greedy(engine: Engine, links: Frame, count: int, settings: Settings) -> Frame:
    """DECISIONS by greedy keep, one range of the priority order at a time, each in one task."""
    orient = partial(rounds.oriented, cuts=[], keep=settings.keep)
    own = links.where("NOT equal")
    sample = sampled(engine, engine.step(own, orient, rounds.RANGED), settings.keep)
    ranges = min(len(sample), 2 * -(-count // engine.limits.edges))
    cuts = [sample[len(sample) * i // ranges] for i in range(1, ranges)]
    orient = partial(rounds.oriented, cuts=cuts, keep=settings.keep)
    edges = engine.step(own, orient, rounds.RANGED, keep="ranged")
    decide = partial(rounds.greedy_range, keep=settings.keep)

    def dropped(part: Frame) -> Frame:
        return engine.step(part, decide, rounds.DROPPED, to="one", keep="range")

    # Range by range, since who is kept in one is decided by who was kept in all before it.
    gone = dropped(edges.where("late_range = 0"))
    for number in range(1, len(cuts) + 1):
        part = edges.where(f"late_range = {number}")
        part = part.join(gone.selectExpr("number AS early"), "early", "left_anti")
        gone = gone.unionByName(dropped(part))
    return _with_equal(links, gone)


def _with_equal(links: Frame, gone: Frame) -> Frame:
    """DECISIONS of all documents of links, of which DROPPED are dropped, and of copies."""
    ends = links.selectExpr("left AS number", "left_score AS score").unionByName(
        links.where("NOT equal").selectExpr("right AS number", "right_score AS score")
    )
    stand = ends.dropDuplicates(["number"]).join(gone.drop("score"), "number", "left").selectExpr(
        "number", "coalesce(kept_by, number) AS kept_by", "coalesce(kept_by, number) AS label",
        "coalesce(kept_by, number) AS via", "score", "coalesce(kept_score, score) AS kept_score",
        "distance", "similarity",
    )  # fmt: skip
    copies = links.where("equal").selectExpr(
        "right AS copy", "left AS stands", "right_score AS copy_score", "similarity AS equals"
    )
    return with_copies(stand, copies)


def with_copies(decisions: Frame, copies: Frame) -> Frame:
    """DECISIONS, and those of copies, which are those of the documents that stand for them.

    Args:
        decisions: Of documents that stand for themselves.
        copies: Of `copy`, `stands`, `copy_score` and `equals`, the similarity of equal documents.
    """
    both = copies.join(decisions.withColumnRenamed("number", "stands"), "stands")
    return decisions.unionByName(both.selectExpr(
        "copy AS number", "kept_by", "label", "via", "copy_score AS score", "kept_score",
        "CAST(coalesce(distance, 0) AS int) AS distance",
        "coalesce(similarity, equals) AS similarity",
    ))  # fmt: skip


def outwards(engine: Engine, links: Frame, label: int, settings: Settings) -> Frame:
    """DECISIONS of a component, from the kept document outwards, one step at a time."""
    first = partial(rounds.best, keep=settings.keep)
    best = engine.step(links, first, rounds.BEST)
    (kept,) = engine.step(best, first, rounds.BEST, to="one").collect()
    to = Route(rounds.lowest, rounds.MEMBER)
    nodes = engine.step(links, rounds.lowest_of, rounds.NODES, to=to, keep="nodes")
    (root,) = nodes.where(f"number = {kept['number']}").select("stands").collect()
    edges = engine.keep(
        links.where("NOT equal").selectExpr("left", "right", "distance").unionByName(
            links.where("NOT equal").selectExpr("right AS left", "left AS right", "distance")
        ),
        "both", "left long, right long, distance int",
    )  # fmt: skip
    reached = engine.session.createDataFrame(
        [(root["stands"], kept["number"])], "number long, via long"
    )
    lowest = nodes.where("number = stands").selectExpr("number AS left", "lowest")
    frontier, is_first = reached, True
    while True:
        near = edges.join(frontier.selectExpr("number AS left"), "left").join(lowest, "left")
        near = near.join(reached.selectExpr("number AS right"), "right", "left_anti")
        via = str(kept["number"]) if is_first else "lowest"
        cost = "0" if settings.by_features else "distance"
        near = near.selectExpr("right AS number", f"CAST({cost} AS int) AS cost",
                               f"CAST({via} AS long) AS via")  # fmt: skip
        to = Route(rounds.steps, rounds.STEPS)
        frontier = engine.step(near, rounds.nearest, rounds.VIA, to=to, keep="via")
        if not frontier.count():
            break
        reached, is_first = reached.unionByName(frontier), False
    neighbours = nodes.join(reached.selectExpr("number AS stands", "via"), "stands")
    own = f"CASE WHEN stands = {root['stands']} THEN {kept['number']} ELSE via END"
    return neighbours.selectExpr(
        "number", f"CAST({kept['number']} AS long) AS kept_by", f"CAST({label} AS long) AS label",
        f"CAST({own} AS long) AS via", "score", "CAST(NULL AS double) AS kept_score",
        "CAST(NULL AS int) AS distance", "CAST(NULL AS double) AS similarity",
    )  # fmt: skip


def _labelled(engine: Engine, links: Frame) -> Frame:
    """Links with the first document of their component as `label`; checked.

    Raises:
        NeardupError: If the ends of a link have different labels: the engine lost something.
    """
    _, named = _checked(links, _star_rounds(engine, links.select("left", "right")))
    columns = ("left", "right", "left_score", "right_score", "distance", "similarity", "equal")
    return named.select("label", *columns)


def stars(engine: Engine, links: Frame) -> Frame:
    """The STARS of links (`left`, `right`), around the first document of each component.

    Raises:
        NeardupError: As `_labelled`.
    """
    if links.count() <= engine.limits.edges:
        return engine.step(links, components.forest, components.STARS, to="one", keep="stars")
    return _checked(links, _star_rounds(engine, links))[0]


def _checked(links: Frame, edges: Frame) -> tuple[Frame, Frame]:
    """The STARS of links, and the links with the `label` of their left end."""
    left = edges.selectExpr("node AS left", "to AS left_to")
    right = edges.selectExpr("node AS right", "to AS right_to")
    named = links.join(left, "left", "left").join(right, "right", "left")
    named = named.selectExpr(
        "*", "coalesce(left_to, left) AS label", "coalesce(right_to, right) AS other_label"
    )
    # Ends of a match always have one label; if an exchange lost rows they do not, so count them.
    wrong = named.where("label != other_label").count()
    if wrong:
        raise NeardupError(
            f"{wrong:,} of the matches join documents that the engine put in different groups:"
            " it lost a part of its work; run it again"
        )
    return edges, named


def _star_rounds(engine: Engine, links: Frame) -> Frame:
    edges = engine.step(links, components.forest, components.STARS, keep="stars")
    for _ in range(MOST_ROUNDS):
        large = _joined(engine, edges, components.large_stars, both=True)
        edges = _joined(engine, large, components.small_stars, both=False)
        changed = large.select("changed").unionByName(edges.select("changed"))
        if not changed.where("changed > 0").count():
            return edges
    raise NeardupError(f"the components did not settle in {MOST_ROUNDS} rounds: run it again")


def _joined(engine: Engine, edges: Frame, step: Worker, *, both: bool) -> Frame:
    to = Route(partial(components.routed, both=both), components.ROUTED)
    return engine.step(edges, step, components.STARS, to=to, keep="stars")
