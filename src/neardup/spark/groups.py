"""Components of the matches, and what is kept in each: at once, or in rounds where one is large.

A component of more matches than one task takes is decided in rounds: by greedy keep a range of the
priority order at a time, each against what was kept before; by components step by step outwards
from the one that is kept.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from neardup.errors import NeardupError
from neardup.spark.session import mapped
from neardup.spark.workers import components, keeping, rounds

if TYPE_CHECKING:
    from neardup.spark.engine import Engine, Settings

__all__ = ["decided", "sampled"]

MOST_ROUNDS: Final = 100
LINKS: Final = (
    "left long, right long, left_score double, right_score double, distance int, equal boolean"
)


def decided(engine: Engine, links: Any, settings: Settings) -> Any:
    """Decide for every document of links (LINKS): DECISIONS, kept.

    Raises:
        NeardupError: If the engine lost something.
    """
    links = engine.keep(links, "links", LINKS)
    labelled = _labelled(engine, links)
    counts = labelled.groupBy("label").count().where(f"count > {engine.limits.edges}")
    large = [(row["label"], row["count"]) for row in counts.collect()]
    how: dict[str, Any] = {
        "keep": settings.keep, "policy": settings.policy, "by_features": settings.by_features,
    }  # fmt: skip
    small = labelled
    if large:
        names = engine.session.createDataFrame([(label,) for label, _ in large], "label long")
        small = labelled.join(names, "label", "left_anti")
    sent = mapped(small, partial(keeping.members, parts=engine.parts), keeping.MEMBERS)
    found = mapped(engine.exchange(sent), partial(keeping.decide, **how), keeping.DECISIONS)
    for label, count in sorted(large):
        own = engine.keep(labelled.where(f"label = {label}").drop("label"), "large", LINKS)
        if settings.policy == "greedy":
            more = _greedy(engine, own, count, settings)
        else:
            more = _outwards(engine, own, label, settings)
        found = found.unionByName(more)
    return engine.keep(found, "decisions", keeping.DECISIONS)


def sampled(frame: Any, keep: str) -> list[tuple[float, int]]:
    """At most SAMPLED pairs of score and number of a frame, those first in order first."""
    taken = mapped(frame, rounds.sample, rounds.SAMPLE)
    rows = mapped(taken.repartition(1), rounds.sample, rounds.SAMPLE).toArrow()
    return rounds.in_order(rows, keep)


def _greedy(engine: Engine, links: Any, count: int, settings: Settings) -> Any:
    """A range of the priority order at a time, each in one task: DECISIONS."""
    orient = partial(rounds.oriented, cuts=[], keep=settings.keep)
    own = links.where("NOT equal")
    sample = sampled(mapped(own, orient, rounds.RANGED), settings.keep)
    ranges = min(len(sample), 2 * -(-count // engine.limits.edges))
    cuts = [sample[len(sample) * i // ranges] for i in range(1, ranges)]
    orient = partial(rounds.oriented, cuts=cuts, keep=settings.keep)
    edges = engine.keep(mapped(own, orient, rounds.RANGED), "ranged", rounds.RANGED)
    gone = None
    for number in range(len(cuts) + 1):
        part = edges.where(f"late_range = {number}")
        if gone is not None:
            part = part.join(gone.selectExpr("number AS early"), "early", "left_anti")
        step = partial(rounds.greedy_range, keep=settings.keep)
        made = engine.keep(mapped(part.repartition(1), step, rounds.DROPPED), "range",
                           rounds.DROPPED)  # fmt: skip
        gone = made if gone is None else gone.unionByName(made)
    return _with_equal(links, gone)


def _with_equal(links: Any, gone: Any) -> Any:
    """DECISIONS of all documents of links, of which some are dropped (DROPPED), and copies."""
    ends = links.selectExpr("left AS number", "left_score AS score").unionByName(
        links.where("NOT equal").selectExpr("right AS number", "right_score AS score")
    )
    stand = ends.dropDuplicates(["number"]).join(gone.drop("score"), "number", "left").selectExpr(
        "number", "coalesce(kept_by, number) AS kept_by", "score",
        "coalesce(kept_score, score) AS kept_score",
    )  # fmt: skip
    copies = links.where("equal").selectExpr(
        "left AS stands", "right AS copy", "right_score AS copy_score"
    ).join(stand.withColumnRenamed("number", "stands"), "stands").selectExpr(
        "copy AS number", "kept_by", "copy_score AS score", "kept_score"
    )  # fmt: skip
    return stand.unionByName(copies).selectExpr(
        "number", "kept_by", "kept_by AS label", "kept_by AS via", "score", "kept_score"
    )


def _outwards(engine: Engine, links: Any, label: int, settings: Settings) -> Any:
    """From the kept document one step of matches at a time: DECISIONS."""
    best = mapped(links, partial(rounds.best, keep=settings.keep), rounds.BEST)
    (kept,) = mapped(
        best.repartition(1), partial(rounds.best, keep=settings.keep), rounds.BEST
    ).collect()
    step = partial(rounds.lowest, parts=engine.parts)
    sent = engine.exchange(mapped(links, step, rounds.MEMBER))
    nodes = engine.keep(mapped(sent, rounds.lowest_of, rounds.NODES), "nodes", rounds.NODES)
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
        sent = mapped(near, partial(rounds.steps, parts=engine.parts), rounds.STEPS)
        frontier = engine.keep(mapped(engine.exchange(sent), rounds.nearest, rounds.VIA), "via",
                               rounds.VIA)  # fmt: skip
        if not frontier.count():
            break
        reached, is_first = reached.unionByName(frontier), False
    found = nodes.join(reached.selectExpr("number AS stands", "via"), "stands")
    own = f"CASE WHEN stands = {root['stands']} THEN {kept['number']} ELSE via END"
    return found.selectExpr(
        "number", f"CAST({kept['number']} AS long) AS kept_by", f"CAST({label} AS long) AS label",
        f"CAST({own} AS long) AS via", "score", "CAST(NULL AS double) AS kept_score",
    )  # fmt: skip


def _labelled(engine: Engine, links: Any) -> Any:
    """Give each link the first document of its component as `label`; checked.

    Raises:
        NeardupError: If the ends of a link have different labels: the engine lost something.
    """
    stars = _stars(engine, links.select("left", "right")).select("node", "to")
    left = stars.selectExpr("node AS left", "to AS left_to")
    right = stars.selectExpr("node AS right", "to AS right_to")
    named = links.join(left, "left", "left").join(right, "right", "left")
    named = named.selectExpr(
        "*", "coalesce(left_to, left) AS label", "coalesce(right_to, right) AS other_label"
    )
    wrong = named.where("label != other_label").count()
    if wrong:
        raise NeardupError(
            f"{wrong:,} of the matches join documents that the engine put in different groups:"
            " it lost a part of its work; run it again"
        )
    return named.select("label", "left", "right", "left_score", "right_score", "distance", "equal")


def _stars(engine: Engine, links: Any) -> Any:
    if links.count() <= engine.limits.edges:
        made = mapped(links.repartition(1), components.forest, components.STARS)
        return engine.keep(made, "stars", components.STARS)
    edges = engine.keep(
        mapped(links, components.forest, components.STARS), "stars", components.STARS
    )
    for _ in range(MOST_ROUNDS):
        large = _joined(engine, edges, components.large_stars, both=True)
        edges = _joined(engine, large, components.small_stars, both=False)
        changed = large.select("changed").unionByName(edges.select("changed"))
        if not changed.where("changed > 0").count():
            return edges
    raise NeardupError(f"the components did not settle in {MOST_ROUNDS} rounds: run it again")


def _joined(engine: Engine, edges: Any, step: Any, *, both: bool) -> Any:
    sent = mapped(
        edges,
        partial(components.routed, parts=engine.parts, both=both),
        "p int, node long, to long",
    )
    made = mapped(engine.exchange(sent), step, components.STARS)
    return engine.keep(made, "stars", components.STARS)
