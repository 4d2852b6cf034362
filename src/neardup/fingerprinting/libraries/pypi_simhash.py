r"""PyPI simhash (1e0ng/simhash): its version families. compat/simhash.py has its classes.

Versions before 1.5 ran on Python 2 only, where \w without re.UNICODE is ASCII and lower() maps
each code point to one.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from neardup.fingerprinting.libraries.library_parts import (
    Aliases,
    Feature,
    Preset,
    counted,
    md5_numbers,
    simple_lower,
)
from neardup.fingerprinting.md5_windows import windows_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.features.choices import Choices

__all__ = ["ALIASES", "PRESETS"]

_CJK: Final = "\u4e00-\u9fff"


@dataclass(frozen=True, slots=True)
class Family:
    """Versions that give the same values for text.

    Attributes:
        pattern: What is kept of the text.
        width: Characters (or words) a feature.
        joined: Join all matches and slide over characters; else over the matches, see `words`.
        words: Slide over the matches and join them by "/"; else over each match's characters.
        lower: "full", "simple" or "" for none.
        short: A text of fewer characters than `width` is a feature itself.
        unique: A feature counts once.
        tie_one: A sum of 0 gives 1.
        bytewise: Widths must be multiples of 8.
    """

    pattern: str
    width: int
    joined: bool = True
    words: bool = False
    lower: str = "simple"
    short: bool = True
    unique: bool = False
    tie_one: bool = True
    bytewise: bool = False

    def features(self, text: str) -> list[str]:
        """The features of a text, repeats included."""
        matches = self._matches(text)
        if self.joined:
            return self._slide("".join(matches))
        if self.words:
            count = max(len(matches) - self.width + 1, 1)
            return ["/".join(matches[i : i + self.width]) for i in range(count)]
        return [feature for match in matches for feature in self._slide(match)]

    def value(self, text: str, bits: int) -> int:
        """The value of a text, for families of joined, lowered text with repeats."""
        plain = text.isascii()
        kept = text if plain else "".join(self._matches(text))
        return windows_value(kept, plain, bits, self.width, tie_one=self.tie_one)

    def _matches(self, text: str) -> list[str]:
        if self.lower:
            text = text.lower() if self.lower == "full" else simple_lower(text)
        return re.findall(self.pattern, text)

    def _slide(self, text: str) -> list[str]:
        count = max(len(text) - self.width + 1, int(self.short))
        return [text[i : i + self.width] for i in range(count)]


_LETTERS: Final = f"[a-zA-Z0-9_{_CJK}]+"
_PYTHON_3: Final = r"[\w\u4e00-\u9fcc]+"

_FAMILIES: Final = {
    "0.0.3": Family("[a-zA-Z]+", 2, joined=False, lower="", short=False),
    "0.1.0": Family("[a-zA-Z0-9_]+", 2, lower="", short=False),
    "0.1.3": Family(_LETTERS, 2, lower="", short=False),
    "0.1.4": Family(_LETTERS, 2, lower="", short=False, unique=True),
    "0.1.6": Family(_LETTERS, 2, lower="", unique=True),
    "0.1.10": Family(f"(?:[a-zA-Z0-9_]+|[{_CJK}])", 2, joined=False, words=True),
    "0.1.11": Family(_LETTERS, 2),
    "1.2.0": Family(_LETTERS, 4),
    "1.5.0": Family(_PYTHON_3, 4, lower="full"),
    "1.8.0": Family(_PYTHON_3, 4, lower="full", tie_one=False),
    "2.0.0": Family(_PYTHON_3, 4, lower="full", tie_one=False, bytewise=True),
}
"""By the first version; checked against the packages themselves by tests/compat."""

_LATER: Final = {
    "0.0.3": "0.0.2",
    "0.1.0": "0.1.1 0.1.2",
    "0.1.4": "0.1.5",
    "0.1.6": "0.1.7 0.1.8",
    "0.1.11": "1.0.0 1.0.1 1.0.11 1.1.0 1.1.1 1.1.2",
    "1.2.0": "1.3.0 1.4.0 1.4.2 1.4.4 1.4.6",
    "1.5.0": "1.5.1 1.6.0 1.6.1 1.6.2 1.7.0 1.7.1",
    "1.8.0": "1.9.0 1.10 1.10.1 1.10.2 1.11.0",
}


def _features(text: str, _: Choices, *, family: Family) -> list[Feature]:
    counts = Counter(family.features(text))
    return [(name.encode(), 1 if family.unique else count) for name, count in counts.items()]


def _fold(features: Sequence[Feature], recipe: Choices, *, family: Family) -> int:
    hashes = md5_numbers(features, slice(None))
    return counted(hashes, features, recipe.bits, tie_one=family.tie_one)


def _value(text: str, recipe: Choices, *, family: Family) -> int:
    return family.value(text, recipe.bits)


def _preset(version: str, family: Family) -> Preset:
    unit = "words" if family.words else "characters"
    kept = "sets" if family.unique else "counts"
    tie = "1" if family.tie_one else "0"
    in_one_go = family.joined and family.lower and not family.unique
    return Preset(
        about=f"PyPI simhash {version}: {family.width} {unit}, MD5, {kept}, ties are {tie}",
        features=functools.partial(_features, family=family),
        fold=functools.partial(_fold, family=family),
        widths=range(8, 129, 8) if family.bytewise else range(1, 129),
        source="github.com/1e0ng/simhash",
        direct=functools.partial(_value, family=family) if in_one_go else None,
    )


_NAMES: Final = {"2.0.0": "pypi-simhash"}

PRESETS: Final = {
    _NAMES.get(version, f"pypi-simhash-{version}"): _preset(
        "2.0.0 to 2.1.2" if version == "2.0.0" else version, family
    )
    for version, family in _FAMILIES.items()
}

_NEWEST: Final = ("2.0.0", "2.1.1", "2.1.2")

ALIASES: Final[Aliases] = {
    f"pypi-simhash-{later}": (f"pypi-simhash-{first}", {})
    for first, others in _LATER.items()
    for later in others.split()
}
ALIASES.update({f"pypi-simhash-{version}": ("pypi-simhash", {}) for version in _NEWEST})
