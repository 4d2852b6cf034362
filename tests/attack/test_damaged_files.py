"""Damage to files that stand alone, fingerprints and recipes: refused in words, or read rightly."""

from __future__ import annotations

import collections
import json
import random
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import neardup as nd
from damage import REFUSED, RIGHT, WRONG, damaged_copy, footer_flips, in_victim
from neardup.documents import ReadOptions
from neardup.errors import NeardupError
from neardup.fingerprinting.fingerprint_files import FingerprintReader
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
    counts: collections.Counter[int] = collections.Counter()
    for _ in range(4 * ATTACKS):
        what = damaged_copy(sound, copy, "made.*", rng)
        code = in_victim(verdict, tmp_path / "log")
        counts[code] += 1
        message = f"{code} after {what}, {seed=}: {(tmp_path / 'log').read_text()}"
        assert code in fine, message
    assert counts[REFUSED] > 0


@pytest.mark.timeout(3600)
def test_no_flip_in_a_footer_is_read_as_other_fingerprints(tmp_path: Path) -> None:
    folder = tmp_path / "sound"
    folder.mkdir()
    make_fingerprints(folder, random.Random(1))
    path = folder / "made.parquet"
    footer_flips(path, lambda: fingerprints_of(folder), tmp_path / "log")
