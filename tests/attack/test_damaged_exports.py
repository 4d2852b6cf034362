"""Damage to a file of `export_index`: refused in words, or read as it was written."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import neardup as nd
from damage import REFUSED, RIGHT, WRONG, damaged_copy, footer_flips, in_victim
from neardup.errors import NeardupError
from neardup.spark.exported_index import export_index, import_index
from neardup.spark.exported_index_file import SCHEMA, metadata_of, reference_batches
from suite import ATTACKS, LONG, needs_jit

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [needs_jit, pytest.mark.timeout(4 * 3600)]
KINDS: dict[str, dict[str, Any]] = {
    "features": {"distance": 3, "store": "features"},
    "none": {"distance": 3, "store": "none"},
    "similar": {"similarity": 0.6, "measure": "containment"},
}


def exported(folder: Path, kind: str, rng: random.Random) -> Path:
    """An index and its export, alone in a folder."""
    (folder / "sound").mkdir()
    texts = [" ".join(rng.choices("abcdefgh", k=1 + i % 9)) for i in range(300)]
    with nd.DurableIndex.create(
        folder / "index", recipe=nd.Recipe(ngram=1), **KINDS[kind]
    ) as index:
        index.add([f"n\u00e9-{i}" for i in range(300)], texts)
    export_index(folder / "index", folder / "sound" / "past.parquet")
    return folder / "sound"


def found_in(path: Path) -> Any:
    return metadata_of(str(path)), [batch.to_pylist() for batch in reference_batches(str(path))]


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_export_is_refused_in_words_or_read_rightly(kind: str, tmp_path: Path) -> None:
    seed = random.SystemRandom().getrandbits(32) if LONG else 1
    rng, copy, log = random.Random(seed), tmp_path / "copy", tmp_path / "log"
    sound = exported(tmp_path, kind, rng)
    expected = found_in(sound / "past.parquet")
    counts: Counter[int] = Counter()

    def verdict() -> int:
        try:
            return RIGHT if found_in(copy / "past.parquet") == expected else WRONG
        except NeardupError:
            return REFUSED

    shutil.copytree(sound, copy)
    assert verdict() == RIGHT
    for _ in range(ATTACKS):
        what = damaged_copy(sound, copy, "past.parquet", rng)
        code = in_victim(verdict, log)
        counts[code] += 1
        assert code in {RIGHT, REFUSED}, f"{code} after {what}, {seed=}: {log.read_text()}"
    assert counts[REFUSED] > 0
    outcome = f"{counts.total():,} rounds, {counts[REFUSED]:,} refused, {counts[RIGHT]:,} right"
    print(f"{kind}: {outcome}")  # noqa: T201 - of the long form, with -s


@pytest.mark.parametrize("kind", KINDS)
def test_no_flip_in_an_exports_footer_is_read_as_something_else(kind: str, tmp_path: Path) -> None:
    path = exported(tmp_path, kind, random.Random(1)) / "past.parquet"
    flips = footer_flips(path, lambda: found_in(path), tmp_path / "log")
    print(f"{kind}: {flips:,} flips of the footer, all refused or harmless")  # noqa: T201 - of the long form, with -s


def test_a_damaged_export_makes_no_index(tmp_path: Path) -> None:
    path = exported(tmp_path, "features", random.Random(1)) / "past.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    with pytest.raises(nd.DataError, match=r"past\.parquet is damaged .*export_index"):
        import_index(path, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_an_export_without_checksums_is_read_and_its_cells_looked_at(tmp_path: Path) -> None:
    """As files of before are."""
    path = exported(tmp_path, "features", random.Random(1)) / "past.parquet"
    rows = pq.read_table(path)
    metadata = {
        key: value for key, value in rows.schema.metadata.items() if b"checksums" not in key
    }
    pq.write_table(rows.cast(SCHEMA.with_metadata(metadata)), path)
    assert import_index(path, tmp_path / "again") == 300
    cells = [cell[:-1] for cell in rows["codes"].to_pylist()]
    cut = rows.set_column(2, "codes", [cells]).cast(SCHEMA.with_metadata(metadata))
    pq.write_table(cut, path)
    with pytest.raises(nd.DataError, match="no fingerprint of 64 bits"):
        import_index(path, tmp_path / "more")
