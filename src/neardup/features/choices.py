"""The choices of a recipe, and the fields of a recipe that the steps read."""

from __future__ import annotations

from typing import Final, Protocol

__all__ = [
    "IGNORABLE",
    "LANGUAGES",
    "MAX_BITS",
    "MAX_NGRAM",
    "NORMAL_FORMS",
    "TIES",
    "TOKENISERS",
    "UNICODE_VERSION",
    "WEIGHTS",
    "Choices",
]

UNICODE_VERSION: Final = "16.0.0"

NORMAL_FORMS: Final = ("NFKC", "NFC", "none")
TOKENISERS: Final = ("words", "chars")
"""Those that the text kernel has; `neardup.features.tokens` has the others."""
WEIGHTS: Final = ("set", "count", "log")
"""Those that need nothing but counts; `neardup.features.weights` has the others."""
LANGUAGES: Final = ("tr", "az")
IGNORABLE: Final = ("accents", "digits", "joiners", "tatweel", "vowel-signs", "zero-width")
"""What a recipe can leave out of a text."""
TIES: Final = ("zero", "one")
MAX_BITS: Final = (1 << 15) - 1
"""The greatest width: a distance must fit into a signed 16-bit number."""
MAX_NGRAM: Final = 1 << 16


class Choices(Protocol):
    """A recipe as the steps that make features know it; see `neardup.Recipe` for the fields."""

    def __hash__(self) -> int: ...
    @property
    def normalize(self) -> str: ...
    @property
    def casefold(self) -> bool: ...
    @property
    def tokens(self) -> str: ...
    @property
    def ngram(self) -> int: ...
    @property
    def weight(self) -> str: ...
    @property
    def hash(self) -> str: ...
    @property
    def bits(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def preset(self) -> str | None: ...
    @property
    def top(self) -> int | None: ...
    @property
    def stopwords(self) -> str | tuple[str, ...] | None: ...
    @property
    def idf(self) -> str | None: ...
    @property
    def missing(self) -> str: ...
    @property
    def dictionary(self) -> tuple[str, ...] | None: ...
    @property
    def language(self) -> str | None: ...
    @property
    def fold_chinese(self) -> str | None: ...
    @property
    def ignore(self) -> tuple[str, ...] | None: ...
