"""Measure which feature hashes SimHash can rest on; writes the table of docs/reference/hashes.md.

    python bench/experiments/hash_fitness.py            # print the table
    python bench/experiments/hash_fitness.py --write    # and put it into docs/reference/hashes.md

For each hash, over single ideographs, single letters and digits, and words of three letters: the
largest bias of an output bit (0 is ideal, 0.5 a constant bit), and the mean distance of the 64-bit
fingerprints of unrelated texts of 60 features each (32 is ideal). Hashes of 32 bits are measured
as they are, distances doubled, and spread over 64 bits.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Final

import numpy as np

from neardup.features.hashes import HASHES, Hash, expanded, hash_features
from neardup.fingerprinting.majority import majority

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "hashes.md"
BEGIN: Final = "<!-- bench/experiments/hash_fitness.py writes from here -->"
END: Final = "<!-- to here -->"
FEATURES: Final = 60
TEXTS: Final = 200
BITS: Final = 64
LEAST_DISTANCE: Final = 28.0
MOST_BIAS: Final = 0.1


def alphabets() -> dict[str, list[bytes]]:
    """Short tokens of three kinds."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return {
        "ideographs": [chr(0x4E00 + i).encode() for i in range(5000)],
        "words": [(a + b + c).encode() for a in letters for b in letters for c in letters],
        "numbers": [str(number).encode() for number in range(10_000)],
    }


def widths(found: Hash) -> tuple[int, ...]:
    """The widths that are measured: those that a recipe folds, raw and spread."""
    return (found.bits, BITS) if found.bits < BITS else (BITS,)


def bias(hashes: list[int], bits: int) -> float:
    """The largest |share of ones - 1/2| over the bits."""
    data = np.array(hashes, "<u8").view(np.uint8).reshape(-1, 8)
    ones = np.unpackbits(data, axis=1, bitorder="little")[:, :bits]
    return float(np.abs(ones.mean(axis=0) - 0.5).max())


def unrelated_distance(hashes: list[int], bits: int) -> float:
    """Mean distance of random texts, as if of 64 bits."""
    draw = random.Random(7)
    texts = [majority(draw.sample(hashes, FEATURES), None, bits) for _ in range(TEXTS)]
    distances = [(a ^ b).bit_count() for i, a in enumerate(texts) for b in texts[:i]]
    return float(np.mean(distances)) * BITS / bits


def table() -> str:
    """The table as Markdown; its last column says whether a hash passes."""
    kinds = alphabets()
    head = "| hash | bits of it | folded | " + " | ".join(
        f"{kind}: bias | distance" for kind in kinds
    )
    lines = [head + " | fit |", "|---" * (4 + 2 * len(kinds)) + "|"]
    for result in HASHES.values():
        for bits in widths(result):
            cells, fit = [], True
            for tokens in kinds.values():
                values = hash_features(result, tokens)
                hashes = [expanded(value, result.bits, bits) for value in values]
                mean, worst = unrelated_distance(hashes, bits), bias(hashes, bits)
                fit = fit and mean >= LEAST_DISTANCE and worst <= MOST_BIAS
                cells += [f"{worst:.3f}", f"{mean:.1f}"]
            row = [f"`{result.name}`", str(result.bits), str(bits), *cells, "yes" if fit else "no"]
            lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def main() -> None:
    """Print the table, and write it if wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    made = table()
    print(made)
    if parser.parse_args().write:
        text = PAGE.read_text("utf-8")
        before, rest = text.split(BEGIN)
        after = rest.split(END)[1]
        PAGE.write_text(f"{before}{BEGIN}\n\n{made}\n\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
