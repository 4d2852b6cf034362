"""`neardup pairs`: every pair of fingerprints within a Hamming distance."""

from __future__ import annotations

from typing import Annotated

import typer

from neardup.cli import options as shared

__all__ = ["pairs"]


def pairs(
    fingerprints: Annotated[
        list[str],
        typer.Argument(
            metavar="FPS.parquet...",
            help="Fingerprint files, folders of them or 'patterns*'; rows are numbered through.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="PAIRS", help=".parquet, .csv, .tsv or .jsonl.")
    ],
    distance: shared.Distance = 3,
    plan: shared.Plan = "auto",
    workers: shared.Workers = None,
    memory: shared.Memory = None,
    tmp: shared.Tmp = None,
    json: shared.Json = False,
) -> None:
    """Find every pair within the distance: none is missed, none is listed twice.

    Fingerprints and pairs that do not fit in --memory go to --tmp.

    Example:
    neardup pairs news.parquet --distance 3 -o pairs.csv
    """
    shared.check_json(json, output)
    shared.check_folder(tmp)

    from neardup.cli.screen import print_pairs_summary, progress
    from neardup.pair_batches import Limits
    from neardup.pipeline import pairs_file

    limits = Limits(memory, tmp, workers)
    with progress() as shown:
        found = pairs_file(fingerprints, output, distance, plan, limits, shown)
    print_pairs_summary(found, json)
