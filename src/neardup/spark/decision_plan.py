"""The plan of a run on an engine: which step runs where, and what is exchanged between them.

1. documents: fingerprints and feature sets; equal ones collapse to one of them;
2. `matches`: every pair that matches; where heavy keys would bring too many, in waves: the
   documents of highest priority first, then only what matches none that they keep;
3. `match_groups`: components of the matches, checked, and greedy keep in them; transitive groups
   are those of `transitive_groups`, from some of the matches.

Whatever is used twice is written to a work folder as Parquet, so that nothing is computed again,
and the driver holds nothing but counts, samples and the small side of a join: some 200 MB at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from neardup.spark import match_groups
from neardup.spark.engine import Route
from neardup.spark.matches import Matches
from neardup.spark.transitive_groups import decided_in_groups
from neardup.spark.workers import decide_components, equal_documents, measuring
from neardup.spark.workers.documents import DOCUMENTS

if TYPE_CHECKING:
    from neardup.spark.engine import Engine, Settings
    from neardup.spark.engine_session import Frame

__all__ = ["Decision", "decide", "edges_of", "named", "with_ids"]

MOST_HALVINGS: Final = 12


@dataclass(frozen=True, slots=True)
class Decision:
    """The documents (DOCUMENTS), and the kept document of each that matches any.

    `decided` has number, kept_by, label, via, distance and similarity; the last two are null but
    for dropped ones. `via` is kept_by but for policy "components".
    """

    documents: Frame
    decided: Frame


def decide(
    engine: Engine, documents: Frame, settings: Settings, past: Frame | None = None
) -> Decision:
    """Decide about DOCUMENTS, a kept frame; those of `past`, if any, came before them."""
    engine.fit(documents if past is None else documents.unionByName(past))
    copies = _copies(engine, documents, settings)
    standing = documents.where("octet_length(codes) > 0")
    gone = engine.small(copies.select("number"), copies.count())
    standing = standing.join(gone, "number", "left_anti")
    if past is not None:
        past = past.where("octet_length(codes) > 0")
        standing, documents = standing.unionByName(past), documents.unionByName(past)
    matches = Matches.of(engine, documents, standing, settings)
    if settings.policy == "components":
        return Decision(documents, decided_in_groups(engine, matches, documents, copies, settings))
    edges = engine.keep(
        _edges(engine, matches, settings, has_past=past is not None), "edges", measuring.EDGES
    )
    links = match_groups.links_of(edges, copies, settings)
    decisions = match_groups.decided(engine, links, settings)
    return Decision(documents, decisions.where(f"number < {equal_documents.PAST}"))


def named(decided: Frame, names: Frame | str, *, with_via: bool) -> Frame:
    """Decisions with ids instead of numbers: `number`, `dropped`, and columns of DUPLICATES.

    Args:
        decided: Of a Decision.
        names: As for `with_ids`.
        with_via: Whether to say the way; it is null for kept documents.
    """
    rows = with_ids(decided, names, "kept_by", "kept")
    columns = ["number", "number != kept_by AS dropped", "kept", "distance", "similarity"]
    # By greedy keep a cluster is named by its kept document.
    columns.append("cluster" if with_via else "kept AS cluster")
    if with_via:
        rows = with_ids(rows, names, "label", "cluster")
        rows = with_ids(rows, names, "via", "via_id")
        columns.append("CASE WHEN number = kept_by THEN NULL ELSE via_id END AS via")
    return rows.selectExpr(*columns)


def with_ids(rows: Frame, names: Frame | str, number: str, id_: str) -> Frame:
    """The rows with a column of ids for one of numbers.

    Args:
        rows: With the column of numbers.
        names: The `id` of each `number`, or the type of ids that are the numbers.
        number: The column's name.
        id_: The new column's.
    """
    if isinstance(names, str):
        return rows.selectExpr("*", f"CAST({number} AS {names}) AS {id_}")
    return rows.join(names.selectExpr(f"number AS {number}", f"id AS {id_}"), number)


def edges_of(engine: Engine, documents: Frame, settings: Settings) -> Frame:
    """Every pair of DOCUMENTS that matches, equal ones too: EDGES, left before right."""
    columns = (name.split()[0] for name in DOCUMENTS.split(", "))
    standing = documents.where("octet_length(codes) > 0").select(*columns)
    standing = engine.keep(standing, "standing", DOCUMENTS)
    matches = Matches.of(engine, standing, standing, settings)
    engine.fit(standing)
    edges = matches.among().selectExpr(
        "least(left, right) AS left", "greatest(left, right) AS right", "left_score",
        "right_score", "distance", "similarity",
    )  # fmt: skip
    return engine.keep(edges, "edges", measuring.EDGES)


def _copies(engine: Engine, documents: Frame, settings: Settings) -> Frame:
    # Of fixed size, as codes are: nobody can shift bytes from one value into the next.
    within = "unhex(sha2(coalesce(concat(X'01', CAST(within AS binary)), X'00'), 256))"
    content = ", ".join([*([within] if settings.has_within else []), "codes", "features"])
    digested = documents.where("octet_length(codes) > 0").selectExpr(
        f"unhex(substring(sha2(concat({content}), 256), 1, 32)) AS digest", "number", "score"
    )
    step = partial(equal_documents.collapse, keep=settings.keep)
    return engine.step(digested, step, equal_documents.COPIES, to="digest", keep="copies")


def _edges(engine: Engine, matches: Matches, settings: Settings, *, has_past: bool) -> Frame:
    """The matches that decide: all, or only one for a document that is dropped soon."""
    edges: list[Frame] = []
    rest: Frame | None = None
    if has_past:
        roles = matches.standing.selectExpr("number", f"number >= {equal_documents.PAST} AS leads")
        edges.append(_first(engine, matches.between(roles), settings))
        rest = _less(engine, roles.where("NOT leads"), edges[0])
    if settings.policy == "greedy" and settings.by_features:
        rest = _in_waves(engine, matches, settings, rest, edges)
    edges.append(matches.among(rest))
    total = edges[0]
    for more in edges[1:]:
        total = total.unionByName(more)
    return total


def _in_waves(
    engine: Engine, matches: Matches, settings: Settings, rest: Frame | None, edges: list[Frame]
) -> Frame | None:
    """Decide about the first documents, as long as heavy keys bring too many pairs.

    Gives the numbers that are left; None for all.
    """
    limits, before = engine.limits, None
    total = matches.documents.count()
    limit = min(total * limits.candidates, engine.parts * limits.of_part)
    while (now := matches.candidates_of(rest)) > limit:
        if before is not None and now > before // 2:
            return rest
        before = now
        levels = _levels(engine, matches.standing, settings, rest)
        block = next(
            (x for level in range(1, MOST_HALVINGS + 1)
             if matches.candidates_of(x := levels.where(f"level >= {level}")) <= limit),
            levels.where(f"level >= {MOST_HALVINGS}"),
        )  # fmt: skip
        rest = _wave(engine, matches, settings, levels, block, edges)
    return rest


def _wave(
    engine: Engine,
    matches: Matches,
    settings: Settings,
    levels: Frame,
    block: Frame,
    edges_so_far: list[Frame],
) -> Frame:
    """Decide about a block, and what its kept documents drop; returns the remaining numbers."""
    edges = engine.keep(matches.among(block), "wave", measuring.EDGES)
    columns = ("left", "right", "left_score", "right_score", "distance", "similarity")
    links = edges.selectExpr(*columns, "false AS equal")
    decided = match_groups.decided(engine, links, settings)
    gone = decided.where("number != kept_by")
    edges_so_far.append(
        gone.selectExpr("kept_by AS left", "number AS right", "kept_score AS left_score",
                        "score AS right_score", "distance", "similarity")
    )  # fmt: skip
    leaders = block.join(gone.select("number"), "number", "left_anti")
    others = levels.join(block.select("number"), "number", "left_anti")
    roles = leaders.selectExpr("number", "true AS leads").unionByName(
        others.selectExpr("number", "false AS leads")
    )
    first = _first(engine, matches.between(roles), settings)
    edges_so_far.append(first)
    return _less(engine, others, first)


def _levels(engine: Engine, documents: Frame, settings: Settings, rest: Frame | None) -> Frame:
    """The number of halvings by priority after which each document is left out; at least 0.

    The places come from a sample, which depends on the documents alone.
    """
    own = documents.where(f"number < {equal_documents.PAST}").select("number", "score")
    if rest is not None:
        own = own.join(rest.select("number"), "number", "left_semi")
    cuts = match_groups.sampled(engine, own, settings.keep)[::-1]
    at = [int(len(cuts) * (1 - 0.5**level)) for level in range(1, MOST_HALVINGS + 1)]
    chosen = [cuts[x] for x in at if x < len(cuts)]
    step = partial(decide_components.levels, cuts=chosen, keep=settings.keep)
    return engine.step(own, step, decide_components.LEVELS, keep="levels")


def _first(engine: Engine, edges: Frame, settings: Settings) -> Frame:
    """The first edge from a leader to each document, of EDGES with leaders; kept."""
    step = partial(decide_components.first_leaders, keep=settings.keep)
    to = Route(decide_components.by_right, decide_components.SENT)
    return engine.step(edges, step, measuring.EDGES, to=to, keep="first")


def _less(engine: Engine, numbers: Frame, edges: Frame) -> Frame:
    """The numbers without those that an edge drops; kept."""
    gone = edges.selectExpr("right AS number")
    rest = numbers.select("number").join(gone, "number", "left_anti")
    return engine.keep(rest, "rest", "number long")
