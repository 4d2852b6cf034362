"""`neardup pairs`: finds every pair of fingerprints within a Hamming distance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli import options as shared
from neardup.errors import UsageError

if TYPE_CHECKING:
    from neardup.pipeline.run.summary import ClustersSummary, PairsSummary

__all__ = ["pairs"]


def pairs(
    fingerprints: Annotated[
        list[str],
        typer.Argument(
            metavar="FPS.parquet...",
            help="Fingerprint files, folders of them or 'patterns*'; rows are numbered across"
            " files.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str | None,
        shared.results_option(
            "--output", "-o", metavar="PAIRS", help=".parquet, .csv, .tsv or .jsonl."
        ),
    ] = None,
    clusters: Annotated[
        str | None,
        shared.results_option(
            "--clusters",
            metavar="FILE",
            help="Instead of pairs: id, cluster and kept of every row; no pair is stored.",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        shared.keep_option("--policy", help="Of clusters: greedy (default) or components."),
    ] = None,
    against: Annotated[
        list[str] | None,
        shared.match_option(
            "--against",
            metavar="OLD.parquet",
            help="Pairs of the new FPS.parquet, in memory, with these, which are read once;"
            " may be repeated.",
        ),
    ] = None,
    distance: shared.Distance = 3,
    plan: shared.Plan = "auto",
    workers: shared.Workers = None,
    memory: shared.Memory = None,
    tmp: shared.Tmp = None,
    csv_safe: shared.CsvSafe = False,
    json: shared.Json = False,
) -> None:
    """Find every pair within the distance: none is missed, none is listed twice.

    Fingerprints and pairs that do not fit in --memory go to --tmp.

    Examples:
    neardup pairs news.parquet --distance 3 -o pairs.csv

    neardup pairs 'fingerprints/*.parquet' --clusters clusters.parquet --memory 12G

    neardup pairs news.parquet --against 'fingerprints/*.parquet' -o pairs.csv
    """
    if (output is None) == (clusters is None):
        raise UsageError("say what to write: -o PAIRS, or --clusters FILE")
    if policy is not None and clusters is None:
        raise UsageError("--policy requires --clusters FILE")
    if against and clusters is not None:
        raise UsageError("--against gives pairs: write them with -o PAIRS, without --clusters")
    shared.check_json(json, output, clusters)
    shared.check_folder(tmp)

    from neardup.cli.screen import print_summary, progress
    from neardup.hamming import Limits
    from neardup.pipeline import clusters_file, new_pairs_file, pairs_file

    limits = Limits(memory, tmp, workers)
    summary: ClustersSummary | PairsSummary
    with progress() as reporter:
        if clusters is not None:
            policy = policy or "greedy"
            options = clusters, distance, plan, policy, limits, reporter
            summary = clusters_file(fingerprints, *options, csv_safe=csv_safe)
        else:
            assert output is not None  # noqa: S101  # checked above
            settings = output, distance, plan, limits, reporter
            if against:
                summary = new_pairs_file(fingerprints, against, *settings, csv_safe=csv_safe)
            else:
                summary = pairs_file(fingerprints, *settings, csv_safe=csv_safe)
    print_summary(summary, json)
