"""`neardup demo`: the main job on the documents that ship with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["demo"]

_SHOWN = 5


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the results.")
    ] = Path("neardup-demo"),
) -> None:
    """Remove near-duplicates from 1,949 real licence texts and notices (from ScanCode's data).

    Example:
    neardup demo -o /tmp/neardup-demo
    """
    import importlib.resources

    from neardup.cli.screen import print_summary, progress, warm_up
    from neardup.documents import ReadOptions
    from neardup.errors import FileError
    from neardup.pipeline import Choice, Limits, Outputs, dedup_files, dedup_texts
    from neardup.pipeline.rule_of import rule_of

    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot create {output}: {error.strerror}") from None
    outputs = Outputs(
        str(output / "unique.jsonl"), str(output / "dropped.csv"), str(output / "clusters.csv")
    )
    corpus = importlib.resources.files("neardup") / "cli" / "commands" / "demo.jsonl.gz"
    rule = rule_of()
    warm_up(lambda: dedup_texts(["one", "one"], rule, Choice(), Limits()), by_features=True)
    with importlib.resources.as_file(corpus) as path, progress() as reporter:
        result = dedup_files(
            [str(path)], outputs, rule, Choice(), ReadOptions(id="id"), Limits(), reporter
        )
    typer.echo("Some of what was dropped, and the document kept for it:")
    for row in result.duplicates.slice(0, _SHOWN).to_pylist():
        typer.echo(f"  {row['dropped']}  ->  {row['kept']}  (similarity {row['similarity']:.3f})")
    print_summary(result.summary, as_json=False)
