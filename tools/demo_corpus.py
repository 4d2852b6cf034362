"""Write src/neardup/cli/demo.jsonl.gz, the demo corpus, chosen from ScanCode's licence texts.

    python tools/demo_corpus.py [SOURCE]

SOURCE is a folder with docs.jsonl.gz, clusters.csv.gz and near_pairs.csv.gz (Jaccard over
5-character shingles, 0.8 and above). The choice, in this order, from the licence texts and notices
whose every licence is on the SPDX list and which are at most 36,000 characters long:

1. repeats: every set of texts that are equal to the last character, up to `REPEAT_LIMIT` each;
2. one word: pairs of the same number of words of which exactly one differs;
3. long: the GNU GPL 3 and its nearest variants;
4. a chain: texts reached by near pairs from the one with most of them, so that the ends of the
   chain are unlike each other although every step is a near-duplicate;
5. stars: one text and its nearest near-duplicates, in the sizes of `STAR_SIZES`, each from another
   licence;
6. singles: texts that are near no other chosen one, as many licences as there are.

A text next to one chosen in steps 3 to 5 is not used later, so those groups stay apart. Ties are
broken by a seeded hash of the id; records come out in the order of that hash, so groups are spread.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT.parent / "shared" / "data" / "scancode_licenses_en"
TARGET = ROOT / "src" / "neardup" / "cli" / "commands" / "demo.jsonl.gz"
SEED = "neardup demo 1"
MAX_CHARACTERS = 36_000
MAX_LONG_CHARACTERS = 900_000
LONG = 8_000
REPEAT_LIMIT = 6
ONE_WORD_PAIRS = 100
LONG_CENTRE = "licenses/gpl-3.0.LICENSE"
LONG_SIZE = 5
CHAIN = 70
STAR_SIZES = (40, 30, 24) + (16,) * 6 + (10,) * 12 + (6,) * 30 + (4,) * 50 + (3,) * 70 + (2,) * 80
SINGLES = 700
NEAR = 0.85

Neighbours = dict[str, dict[str, float]]


@dataclass
class Source:
    """The eligible texts by id, their licences, and their near pairs both ways round."""

    texts: dict[str, str]
    licences: dict[str, str]
    near: Neighbours = field(default_factory=dict)


@dataclass
class Choice:
    """What is chosen so far: id to the reason, and the ids that no later step may use."""

    reasons: dict[str, str] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    long_characters: int = 0

    def add(self, group: list[str], reason: str, source: Source) -> bool:
        """Take a group whole, unless its long texts would make the file too large."""
        new = [name for name in group if name not in self.reasons]
        long = sum(len(source.texts[name]) for name in new if len(source.texts[name]) > LONG)
        if long and self.long_characters + long > MAX_LONG_CHARACTERS:
            return False
        self.long_characters += long
        self.reasons.update(dict.fromkeys(new, reason))
        return True

    def close(self, group: list[str], source: Source) -> None:
        """Keep the group's neighbours out of later steps."""
        self.closed.update(group)
        for name in group:
            self.closed.update(source.near.get(name, ()))


def rank(name: str) -> bytes:
    """A seeded pseudo-random order of ids."""
    return hashlib.sha256(f"{SEED}:{name}".encode()).digest()


def read(folder: Path) -> Source:
    """Read the texts that may ship and the near pairs between them."""
    with gzip.open(folder / "clusters.csv.gz", "rt", encoding="utf8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    listed = {
        row["license_expression"]
        for row in rows
        if row["spdx"] and not row["spdx"].startswith("LicenseRef")
    }
    licences = {
        row["id"]: row["license_expression"]
        for row in rows
        if row["kind"] in {"text", "notice"} and licence_keys(row["license_expression"]) <= listed
    }
    texts = {}
    with gzip.open(folder / "docs.jsonl.gz", "rt", encoding="utf8") as lines:
        for line in lines:
            record = json.loads(line)
            if record["id"] in licences and len(record["text"]) <= MAX_CHARACTERS:
                texts[record["id"]] = record["text"]
    source = Source(texts, licences)
    with gzip.open(folder / "near_pairs.csv.gz", "rt", encoding="utf8", newline="") as lines:
        for row in csv.DictReader(lines):
            one, other, jaccard = row["id1"], row["id2"], float(row["jaccard5"])
            if one in texts and other in texts:
                source.near.setdefault(one, {})[other] = jaccard
                source.near.setdefault(other, {})[one] = jaccard
    return source


def licence_keys(expression: str) -> set[str]:
    """The licence keys that an expression such as "mit OR (gpl-2.0 AND bsd-new)" names."""
    words = expression.replace("(", " ").replace(")", " ").split()
    return {word for word in words if word not in {"AND", "OR", "WITH"}}


def choose(source: Source) -> Choice:
    """Run the six steps of the module's docstring."""
    choice = Choice()
    choose_repeats(source, choice)
    choose_one_word(source, choice)
    choose_long(source, choice)
    choose_chain(source, choice)
    choose_stars(source, choice)
    choose_singles(source, choice)
    return choice


def choose_repeats(source: Source, choice: Choice) -> None:
    equal = defaultdict(list)
    for name, text in source.texts.items():
        equal[text].append(name)
    for group in sorted(equal.values()):
        if len(group) > 1:
            choice.add(sorted(group, key=rank)[:REPEAT_LIMIT], "exact repeat", source)


def choose_one_word(source: Source, choice: Choice) -> None:
    pairs = 0
    licences = Counter[str]()
    for name in sorted(source.near, key=rank):
        licence = source.licences[name]
        others = source.near[name]
        for other in sorted(others, key=rank):
            if name < other and licences[licence] < 3 and one_word_apart(source, name, other):
                pairs += choice.add([name, other], "one word", source)
                licences[licence] += 1
                break
        if pairs == ONE_WORD_PAIRS:
            return


def one_word_apart(source: Source, one: str, other: str) -> bool:
    left, right = source.texts[one].split(), source.texts[other].split()
    if len(left) != len(right):
        return False
    return sum(a != b for a, b in zip(left, right, strict=True)) == 1


def choose_long(source: Source, choice: Choice) -> None:
    group = star(source, choice, LONG_CENTRE, LONG_SIZE)
    choice.add(group, "long", source)
    choice.close(group, source)


def choose_chain(source: Source, choice: Choice) -> None:
    start = max(source.near, key=lambda name: (len(source.near[name]), name))
    chain = [start]
    while len(chain) < CHAIN:
        tail = chain[-1]
        ahead = [name for name in source.near[tail] if name not in chain]
        unlike = {name: similarity_to(source, name, chain[:-1]) for name in ahead}
        if not ahead:
            break
        chain.append(min(ahead, key=lambda name: (unlike[name], rank(name))))
    choice.add(chain, "chain", source)
    choice.close(chain, source)


def similarity_to(source: Source, name: str, earlier: list[str]) -> float:
    """The highest similarity to earlier links, 0 where none is a near pair."""
    return max((source.near[name].get(link, 0.0) for link in earlier), default=0.0)


def choose_stars(source: Source, choice: Choice) -> None:
    used = set[str]()
    for size in STAR_SIZES:
        for centre in sorted(source.near, key=rank):
            if centre in choice.closed or source.licences[centre] in used:
                continue
            group = star(source, choice, centre, size)
            if len(group) == size and choice.add(group, f"star of {size}", source):
                choice.close(group, source)
                if size > 3:
                    used.add(source.licences[centre])
                break


def star(source: Source, choice: Choice, centre: str, size: int) -> list[str]:
    """The centre and its nearest free neighbours, at most `size` in all."""
    near = source.near[centre]
    free = [name for name in near if near[name] >= NEAR and name not in choice.closed]
    return [centre, *sorted(free, key=lambda name: (-near[name], rank(name)))[: size - 1]]


def choose_singles(source: Source, choice: Choice) -> None:
    licences = Counter[str]()
    chosen = 0
    for most in (1, 2, 3):
        for name in sorted(source.texts, key=rank):
            near = source.near.get(name, {})
            taken = name in choice.reasons or any(other in choice.reasons for other in near)
            if taken or licences[source.licences[name]] >= most:
                continue
            if choice.add([name], "single", source):
                licences[source.licences[name]] += 1
                chosen += 1
            if chosen == SINGLES:
                return


def write(source: Source, choice: Choice, target: Path) -> None:
    """Write gzip JSON lines that are the same bytes for the same choice."""
    lines = [
        json.dumps(
            {"id": name, "licence": source.licences[name], "text": source.texts[name]},
            ensure_ascii=False,
        )
        for name in sorted(choice.reasons, key=rank)
    ]
    target.parent.mkdir(parents=True, exist_ok=True)
    body = ("\n".join(lines) + "\n").encode()
    target.write_bytes(gzip.compress(body, compresslevel=9, mtime=0))


def summary(source: Source, choice: Choice) -> str:
    """What was chosen, counted."""
    names = choice.reasons
    texts = [source.texts[name] for name in names]
    reasons = Counter(names.values())
    near = [
        jaccard
        for name in names
        for other, jaccard in source.near.get(name, {}).items()
        if other in names and name < other
    ]
    lengths = sorted(map(len, texts))
    lines = [
        f"{len(names):,} documents, {sum(lengths):,} characters",
        f"lengths: {lengths[0]:,}, median {lengths[len(lengths) // 2]:,}, to {lengths[-1]:,}",
        f"{len({source.licences[name] for name in names}):,} licences and expressions",
        f"{len(texts) - len(set(texts)):,} exact repeats",
        f"{len(near):,} near pairs at 0.8 and above, {sum(j >= 0.95 for j in near):,} at 0.95",
    ]
    lines += [f"  {count:5,} {reason}" for reason, count in sorted(reasons.items())]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Choose, write and say what was written."""
    source = read(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE)
    choice = choose(source)
    write(source, choice, TARGET)
    sys.stdout.write(summary(source, choice))
    sys.stdout.write(f"{TARGET}: {TARGET.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
