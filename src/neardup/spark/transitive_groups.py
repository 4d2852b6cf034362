"""Transitive groups: matches until the groups are known, then whole groups.

By distance a task gives only as many matches as join what it has. By similarity there are rounds:
in one a document meets some of the others under each of its keys, less those that it is in a group
with; what matches is united, and the next has more for those keys that had more. So a dense group
costs a few matches for each document and not all of its pairs. Then the documents of each group are
sent to one task, which decides as one machine does.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from neardup.spark import match_groups
from neardup.spark.engine import Route
from neardup.spark.matches import with_measures
from neardup.spark.workers import whole_groups
from neardup.spark.workers.decide_components import DECISIONS

if TYPE_CHECKING:
    from neardup.spark.engine import Engine, Settings
    from neardup.spark.engine_session import Frame
    from neardup.spark.matches import Matches

__all__ = ["decided_in_groups"]

GROWTH: Final = 8
"""How many times as many others a document meets under a key in the next round. Pairs that did not
match are listed again, so all rounds are 8/7 of the last."""


def decided_in_groups(
    engine: Engine, matches: Matches, documents: Frame, copies: Frame, settings: Settings
) -> Frame:
    """Decide for every document that matches another: DECISIONS, kept.

    Args:
        engine: Where.
        matches: Of documents that stand for themselves.
        documents: DOCUMENTS, all.
        copies: COPIES.
        settings: When two match.

    Raises:
        NeardupError: If the engine lost something.
    """
    members = _members(engine, matches, copies)
    sizes = members.selectExpr("label", "octet_length(features) + 32 AS bytes").groupBy("label")
    most = 8 * engine.limits.features
    large = [row["label"] for row in sizes.sum("bytes").where(f"`sum(bytes)` > {most}").collect()]
    small = members
    if large:
        names = engine.session.createDataFrame([(label,) for label in large], "label long")
        small = members.join(names, "label", "left_anti")
    to = Route(whole_groups.by_label, whole_groups.SENT)
    step = partial(whole_groups.decide_groups, settings=settings)
    decisions = engine.step(small, step, DECISIONS, to=to, keep="groups")
    own = copies.selectExpr(
        "number AS copy", "stands", "score AS copy_score",
        f"{match_groups.similarity_of_copies(settings)} AS equals",
    )  # fmt: skip
    decisions = match_groups.with_copies(decisions, own)
    for label in sorted(large):
        own = members.where(f"label = {label}").select("number", "lowest")
        more = _large(engine, matches, own, copies, settings)
        more = with_measures(engine, more, documents, settings.measure)
        decisions = decisions.unionByName(more)
    return engine.keep(decisions, "decisions", DECISIONS)


def _members(engine: Engine, matches: Matches, copies: Frame) -> Frame:
    """MEMBERS of all groups, and documents that only equal ones match; kept."""
    labels = _labels(engine, matches)
    stands = copies.selectExpr("stands AS number", "lowest").dropDuplicates(["number"])
    alone = stands.join(labels, "number", "left_anti").selectExpr("number", "number AS label")
    labelled = labels.unionByName(alone).join(stands, "number", "left")
    labelled = labelled.selectExpr("number", "label", "coalesce(lowest, number) AS lowest")
    columns = ("label", "lowest", "number", "score", "codes", "features")
    members = matches.documents.join(labelled, "number").select(*columns)
    return engine.keep(members, "members", whole_groups.MEMBERS)


def _labels(engine: Engine, matches: Matches) -> Frame:
    """The first document of its group, as `label`, for each `number` that matches others."""
    seen, most, labels, edges = 0, engine.limits.others, None, None
    if not matches.settings.by_features:
        return _labels_of(match_groups.stars(engine, matches.links()))
    while True:
        matching, has_more = matches.some(labels, seen, most)
        links = matching.select("left", "right")
        stars = match_groups.stars(engine, links if edges is None else links.unionByName(edges))
        labels = _labels_of(stars)
        if not has_more:
            return labels
        edges = stars.selectExpr("to AS left", "node AS right")
        seen, most = most, GROWTH * most


def _labels_of(stars: Frame) -> Frame:
    centres = stars.selectExpr("to AS number", "to AS label").dropDuplicates(["number"])
    return stars.selectExpr("node AS number", "to AS label").unionByName(centres)


def _large(
    engine: Engine, matches: Matches, own: Frame, copies: Frame, settings: Settings
) -> Frame:
    """DECISIONS of a group too large for one task, from all its matches."""
    numbers = engine.keep(own, "large", "number long, lowest long")
    (row,) = numbers.selectExpr("min(lowest) AS label").collect()
    its = copies.join(numbers.selectExpr("number AS stands"), "stands", "left_semi")
    links = match_groups.links_of(matches.among(numbers), its, settings)
    links = engine.keep(links, "links", match_groups.LINKS)
    return match_groups.outwards(engine, links, row["label"], settings)
