"""`neardup pairs`: every pair of fingerprints within a Hamming distance."""

from __future__ import annotations

from typing import Annotated

import typer

from neardup.cli import options as shared

__all__ = ["pairs"]


def pairs(
    fingerprints: Annotated[
        str, typer.Argument(metavar="FPS.parquet", help="A fingerprint file.", show_default=False)
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="PAIRS", help=".parquet, .csv, .tsv or .jsonl.")
    ],
    distance: shared.Distance = 3,
    plan: shared.Plan = "auto",
    workers: shared.Workers = None,
    json: shared.Json = False,
) -> None:
    """Find every pair within the distance: none is missed, none is listed twice.

    Example:
    neardup pairs news.parquet --distance 3 -o pairs.csv
    """
    shared.check_json(json, output)

    from neardup.cli.screen import print_pairs_summary
    from neardup.pipeline import pairs_file

    print_pairs_summary(pairs_file(fingerprints, output, distance, plan, workers), json)
