"""Compare presets with the packages themselves, each in its own environment, on random texts.

    python tests/compat/compare_with_package.py [--texts 2000] [NAME ...]

Slow: it installs the packages from the package index under bench/.peers/compat. Old versions of
PyPI simhash need `python2.7` and `python3.6`; without them they are skipped, and said to be.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import neardup as nd
from modules_alone import DATA_JUICER, TEXT_DEDUP_0_4_0, TEXT_DEDUP_0_4_1
from neardup.compat.simhash import Simhash

HOME: Final = Path(__file__).resolve().parents[2] / "bench" / ".peers" / "compat"

READ: Final = "import sys, json; rows = json.load(sys.stdin)\n"
WRITE: Final = "\njson.dump([str(int(v)) for v in values], sys.stdout)\n"
SIMHASH: Final = "from simhash import Simhash; values = [Simhash(t).value for t in rows]"
WIDTHS: Final = "from simhash import Simhash; values = [Simhash(t, f={f}).value for t in rows]"
FUNCTION: Final = "from simhash import simhash; values = [simhash(t) for t in rows]"
GAOYA: Final = (
    "from gaoya.gaoya import simhash as s; index = s.SimHash{bits}StringIntIndex({arguments})\n"
    "values = [index.doc2signature(t) for t in rows]"
)
PYBIND: Final = (
    "import re, simhash\n"
    "def words(t): return [' '.join(w) for w in simhash.shingle(re.split(r'\\W+', t.lower()), 4)]\n"
    "hashes = lambda t: [simhash.unsigned_hash(w.encode()) for w in words(t)]\n"
    "values = [simhash.compute(hashes(t)) for t in rows]"
)
TRAFILATURA: Final = (
    "from trafilatura.deduplication import Simhash\nvalues = [Simhash(t).hash for t in rows]"
)
FEATURES: Final = """
from simhash import Simhash
def value(row):
    try:
        return Simhash([tuple(x) if isinstance(x, list) else x for x in row]).value
    except (ValueError, TypeError):  # all digests repeated 0 times; a float weight inherited
        return -1
values = [value(row) for row in rows]
"""
ALONE: Final = ("simhash=", "text-dedup=", "py-data-juicer=")
"""Packages whose dependencies are not installed, or are named."""
NEW: Final = "\u9fff"
"""Of Unicode 14: a word character in the Pythons that we run on, none in Python 3.6."""


@dataclass(frozen=True)
class Comparison:
    """One preset against one package.

    Attributes:
        preset: The preset's name; "" for the drop-in class on features.
        packages: What pip installs.
        code: Python that makes `values` of `rows` with the package.
        python: Interpreter that the package needs.
        options: Of the preset.
    """

    preset: str
    packages: tuple[str, ...]
    code: str
    python: str = sys.executable
    options: dict[str, Any] = field(default_factory=dict)


def old_versions() -> list[Comparison]:
    """The version families of PyPI simhash, at their first and last version."""
    by_python = {
        "python2.7": "0.1.1 0.1.2 0.1.3 0.1.4 0.1.5 0.1.6 0.1.8 0.1.10 0.1.11 1.1.2 1.2.0 1.4.6",
        "python3.6": "1.5.0 1.5.1 1.6.0 1.7.1 1.8.0 1.11.0",
    }
    comparisons = [Comparison("pypi-simhash-0.0.3", ("simhash==0.0.3",), FUNCTION, "python2.7")]
    return comparisons + [
        Comparison(f"pypi-simhash-{version}", (f"simhash=={version}",), SIMHASH, python)
        for python, versions in by_python.items()
        for version in versions.split()
    ]


def gaoya() -> list[Comparison]:
    """Its analyzers, at both widths."""
    analyzers: list[tuple[str, str, dict[str, Any]]] = [
        ("gaoya", "6, 5, 'word', False, None", {}),
        ("gaoya-words", "6, 5, 'word', False, (1, 1)", {}),
        ("gaoya-words", "6, 5, 'word', True, (3, 3)", {"ngram": 3, "casefold": True}),
        ("gaoya-chars", "6, 5, 'char', False, (3, 3)", {}),
    ]
    return [
        Comparison(
            name,
            ("gaoya==0.2.2",),
            GAOYA.format(bits=bits, arguments=arguments),
            options={"bits": bits} | options,
        )
        for name, arguments, options in analyzers
        for bits in (64, 128)
    ]


def alone() -> list[Comparison]:
    """Single modules of large packages."""
    needed = ("bitarray", "xxhash", "numpy")
    juicer = ("py-data-juicer==1.6.1", "simhash-pybind==0.0.3", "numpy", "regex")
    tokenizations = {
        "data-juicer": "space",
        "data-juicer-characters": "character",
        "data-juicer-punctuation": "punctuation",
    }
    return [
        Comparison("text-dedup-0.4.0", ("text-dedup==0.4.0", *needed), TEXT_DEDUP_0_4_0),
        Comparison("text-dedup", ("text-dedup==0.4.1", *needed), TEXT_DEDUP_0_4_1, "python3.12"),
        *(
            Comparison(name, juicer, DATA_JUICER.replace("TOKENIZATION", tokenization))
            for name, tokenization in tokenizations.items()
        ),
    ]


def comparisons() -> list[Comparison]:
    """All of them."""
    newest = ("simhash==2.1.2", "numpy<2")
    return [
        Comparison("pypi-simhash", newest, SIMHASH),
        Comparison("pypi-simhash", newest, WIDTHS.format(f=128), options={"bits": 128}),
        Comparison("pypi-simhash", newest, WIDTHS.format(f=32), options={"bits": 32}),
        Comparison("", newest, FEATURES),
        *gaoya(),
        Comparison("simhash-cpp", ("simhash-pybind==0.0.3", "numpy"), PYBIND),
        Comparison("trafilatura", ("trafilatura==2.3.1",), TRAFILATURA),
        *alone(),
        *old_versions(),
    ]


ALPHABETS: Final = (
    "abcdefghijklmnopqrstuvwxyzABCXYZ0123456789_' .,:/-\n\t",
    "abcİIıiğşçöüŞĞ ßẞſKÅ.,!",  # noqa: RUF001
    "αβγσςΣΆΐ ώἀᾳ;·",
    "абвгдЖЩЯё .,—«»",
    "当山峰没有棱角的时候欢迎来到阿里巴巴！，。鿌鿍鿿 𠀀",  # noqa: RUF001
    "ひらがなカタカナ漢字ー・。 ",
    "안녕하세요 세계 ",
    "مرحبا بالعالم ،؟ ١٢٣",
    "नमस्ते दुनिया ।ก ไทย",
    "²Ⅷ½e\u0301A\u0300ﬁ\u200d\u00a0\u3000_🙂👍🏽",
)


def random_texts(count: int, seed: int = 1) -> list[str]:
    """Texts of all scripts, from empty to a few thousand characters, some of repeated words."""
    draw = random.Random(seed)
    texts = ["", " ", "a", "ab", "abc", "abcd", "abcde", "a b c d e", "!!!", "当"]
    while len(texts) < count:
        alphabet = draw.choice(ALPHABETS)
        if draw.random() < 0.2:
            alphabet += draw.choice(ALPHABETS)
        size = draw.choice((3, 10, 40, 200, 200, 2000))
        text = "".join(draw.choice(alphabet) for _ in range(draw.randrange(size)))
        texts.append(text * draw.choice((1, 1, 1, 3)))
    return texts


def random_features(count: int, seed: int = 2) -> list[Any]:
    """Feature lists: plain, weighted by ints small and large, negative, by floats, and mixed."""
    draw = random.Random(seed)
    rows: list[Any] = [[], ["a"], [["a", 2], "b"], [["a", 0]], [["a", 51], ["b", 50.5]]]
    kinds = [lambda: draw.randrange(1, 60), lambda: draw.randrange(1, 255), lambda: 1]
    kinds += [lambda: draw.uniform(0, 99), lambda: draw.randrange(-3, 9), draw.random]
    while len(rows) < count:
        weight = draw.choice(kinds)
        names = [f"{draw.choice(ALPHABETS)[:4]}{draw.random()}" for _ in range(draw.randrange(600))]
        plain = draw.random() if isinstance(weight(), int) else 0
        rows.append([name if draw.random() < plain else [name, weight()] for name in names])
    return rows


@functools.cache
def interpreter(name: str) -> str | None:
    """A Python of this name that runs, on the path or of pyenv; None without one."""
    of_pyenv = sorted((Path.home() / ".pyenv" / "versions").glob(f"*/bin/{name}"))
    for program in (shutil.which(name), *of_pyenv):
        # pyenv puts a name on the path also where the version is not the chosen one.
        if (
            program
            and subprocess.run([program, "-V"], capture_output=True, check=False).returncode == 0
        ):
            return str(program)
    return None


def environment(comparison: Comparison) -> Path | None:
    """The folder that the packages were installed into; None without the interpreter."""
    python = interpreter(comparison.python)
    if python is None:
        return None
    home = HOME / "-".join(comparison.packages).replace("<", "").replace("=", "")
    if not home.exists():
        command = [python, "-m", "pip", "install", "-qqq", "--target", str(home)]
        first = comparison.packages[0]
        if first.startswith(ALONE) and "2.1.2" not in first:
            command.append("--no-deps")
        subprocess.run([*command, *comparison.packages], check=True)
    return home


def theirs(comparison: Comparison, home: Path, rows: list[Any]) -> list[int]:
    """The package's values."""
    process = subprocess.run(
        [str(interpreter(comparison.python)), "-c", READ + comparison.code + WRITE],
        input=json.dumps(rows).encode(),
        capture_output=True,
        check=True,
        env={"PYTHONPATH": str(home), "PYTHONIOENCODING": "utf8"},
    )
    last = process.stdout[process.stdout.rindex(b"[") :]  # an old version prints features
    return [int(value) for value in json.loads(last)]


def ours(comparison: Comparison, rows: list[Any]) -> list[int]:
    """Our values."""
    if not comparison.preset:
        features = [[tuple(x) if isinstance(x, list) else x for x in row] for row in rows]
        return [Simhash(row).value for row in features]
    recipe = nd.preset(comparison.preset, **comparison.options)
    values = nd.fingerprints(rows, recipe=recipe)
    return [sum(int(word) << 64 * i for i, word in enumerate(row)) for row in values]


def say(line: str) -> None:
    """Print at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Compare; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    texts, features = random_texts(arguments.texts), random_features(arguments.texts // 4)
    different = 0
    for comparison in comparisons():
        name = f"{comparison.preset or 'drop-in'} {comparison.options or ''}".strip()
        if arguments.names and not any(prefix in name for prefix in arguments.names):
            continue
        home = environment(comparison)
        if home is None:
            say(f"{name}: skipped, there is no {comparison.python}")
            continue
        rows = texts if comparison.preset else features
        if comparison.python == "python3.6":
            rows = [text.replace(NEW, "") for text in texts]
        pairs = list(zip(rows, ours(comparison, rows), theirs(comparison, home, rows), strict=True))
        wrong = [(row, f"{a:x}", f"{b:x}") for row, a, b in pairs if a != b and b >= 0]
        refused = sum(b < 0 for _, _, b in pairs)
        different += len(wrong)
        say(
            f"{name} against {comparison.packages[0]}: {len(rows) - refused} rows,"
            f" {len(wrong)} differ, {refused} that the package refuses"
        )
        for row in wrong[:2]:
            say(f"    {str(row)[:400]}")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
