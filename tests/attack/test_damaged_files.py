"""Damage to files that stand alone, fingerprints and recipes: refused in words, or read rightly."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import random
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import neardup as nd
from damage import REFUSED, RIGHT, WRONG, damaged_copy, in_victim
from neardup.documents import ReadOptions
from neardup.errors import NeardupError
from neardup.fingerprinting.files import FingerprintReader
from neardup.pipeline import fingerprint_files
from suite import ATTACKS, LONG

if TYPE_CHECKING:
    from pathlib import Path


def make_fingerprints(folder: Path, rng: random.Random) -> None:
    """A file of two columns, 128 bits, some rows without a fingerprint."""
    texts = [" ".join(rng.choices("abcdefgh", k=i % 9)) for i in range(700)]
    lines = [json.dumps({"id": f"n\u00e9-{i}", "text": text}) for i, text in enumerate(texts)]
    source = folder.with_name("in.jsonl")
    source.write_text("\n".join(lines))
    output, recipe = str(folder / "made.parquet"), nd.Recipe(bits=128)
    fingerprint_files([str(source)], output, recipe, ReadOptions(id="id"))


def fingerprints_of(folder: Path) -> Any:
    reader = FingerprintReader([str(folder / "made.parquet")])
    values = [np.ma.filled(batch, 0).tolist() for batch in reader.batches()]
    return reader.bits, reader.recipe, values, [batch.to_pylist() for batch in reader.ids()]


def make_recipe(folder: Path, _rng: random.Random) -> None:
    (folder / "made.json").write_text(nd.Recipe(ngram=2, weight="log", bits=128).to_json())


def recipe_of(folder: Path) -> Any:
    recipe = nd.Recipe.from_json((folder / "made.json").read_bytes())
    return nd.fingerprint("one two three four", recipe)


KINDS: dict[str, tuple[Any, Any, set[int]]] = {
    "fingerprints": (make_fingerprints, fingerprints_of, {RIGHT, REFUSED}),
    "recipe": (make_recipe, recipe_of, {RIGHT, REFUSED, WRONG}),  # it may be another recipe
}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_damaged_file_is_refused_in_words_or_read_rightly(kind: str, tmp_path: Path) -> None:
    make, read, fine = KINDS[kind]
    seed = random.SystemRandom().getrandbits(32) if LONG else 1
    rng, sound, copy = random.Random(seed), tmp_path / "sound", tmp_path / "copy"
    sound.mkdir()
    make(sound, rng)
    expected = read(sound)

    def verdict() -> int:
        try:
            return RIGHT if read(copy) == expected else WRONG
        except NeardupError:
            return REFUSED

    shutil.copytree(sound, copy)
    assert verdict() == RIGHT
    found: collections.Counter[int] = collections.Counter()
    for _ in range(4 * ATTACKS):
        what = damaged_copy(sound, copy, "made.*", rng)
        code = in_victim(verdict, tmp_path / "log")
        found[code] += 1
        told = f"{code} after {what}, {seed=}: {(tmp_path / 'log').read_text()}"
        assert code in fine, told
    assert found[REFUSED] > 0


def flips_of_the_footer(data: bytes) -> list[tuple[int, int]]:
    """Every bit of a Parquet file's footer, its length and the magic behind it."""
    size = 8 + int.from_bytes(data[-8:-4], "little")
    return [(at, bit) for at in range(len(data) - size, len(data)) for bit in range(8)]


@pytest.mark.timeout(3600)
def test_no_flip_in_a_footer_is_read_as_other_fingerprints(tmp_path: Path) -> None:
    folder = tmp_path / "sound"
    folder.mkdir()
    make_fingerprints(folder, random.Random(1))
    expected, path = fingerprints_of(folder), folder / "made.parquet"
    data = path.read_bytes()
    flips = flips_of_the_footer(data)

    def verdict() -> int:
        for at, bit in flips[:: 1 if LONG else len(flips) // 60]:
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
            os.write(2, f"\nbit {bit} of {at}\n".encode())  # the last one of the log is at fault
            with contextlib.suppress(NeardupError):
                if fingerprints_of(folder) != expected:
                    return WRONG
        return RIGHT

    code = in_victim(verdict, tmp_path / "log", seconds=600)
    assert code == RIGHT, (tmp_path / "log").read_text()[-2000:]
