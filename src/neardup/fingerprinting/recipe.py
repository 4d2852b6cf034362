"""The recipe: one frozen value that holds everything that can change a fingerprint."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import warnings
from dataclasses import dataclass
from typing import Any, Final

from neardup.errors import RecipeError, UnfitHashWarning
from neardup.features.choices import (
    LANGUAGES,
    MAX_BITS,
    MAX_NGRAM,
    NORMAL_FORMS,
    TIES,
    TOKENISERS,
    UNICODE_VERSION,
    WEIGHTS,
)
from neardup.features.hashes import HASHES, find_hash

__all__ = ["RECIPE_VERSION", "Recipe", "recipe_of"]

RECIPE_VERSION: Final = 1

# Fields that came after recipe version 1 was fixed, with the value that means "as before". They
# stay out of the canonical JSON while they hold it, so that older digests stay what they were.
LATER_FIELDS: Final[dict[str, Any]] = {
    "preset": None,
    "top": None,
    "stopwords": None,
    "idf": None,
    "missing": "default",
    "language": None,
    "fold_chinese": None,
    "dictionary": None,
    "ignore": None,
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """A definition of fingerprints; docs/reference/recipe.md has the exact meaning of each field.

    Two recipes give the same fingerprints for every text if and only if their `digest` is equal.

    Args:
        normalize: Unicode normal form taken first: "NFKC", "NFC" or "none".
        casefold: Fold case (full folding) after normalising.
        tokens: "words" (runs of word characters; each ideograph, kana or other character of a
            script that is written without spaces is a token of its own), "chars" (code points,
            white space runs collapsed to one space), "jieba", "jieba-search", "jieba-keywords"
            (Chinese words; an extra), "regex:PATTERN" (its matches) or what `custom_tokens` gave.
        ngram: Tokens a feature, 1 or more. A text of fewer tokens has one feature: all of them.
        weight: "set" (every distinct feature counts once), "count" (as often as it occurs) or
            "log" (1 + ln(count)), "tfidf" (count times inverse document frequency), "textrank" or
            what `custom_weight` gave; rounded to a multiple of 2**-16.
        hash: The feature hash, a name in `neardup.features.hashes.HASHES` or what `custom_hash`
            gave; of the UTF-8 of the feature's tokens joined by one space, by nothing for "chars".
        bits: Width of the fingerprint, from 1 to 32,767.
        seed: Seed of the hash, 0 to 2**64 - 1; some hashes take 32 bits or none.
        tie: The bit where a sum is exactly 0: "zero" or "one".
        preset: Another library's definition, which then decides all but its own options; made by
            `neardup.preset`.
        top: How many of the heaviest features to keep; of equally heavy ones those that occur
            first; by count for "set".
        stopwords: Tokens to remove: a language, such as "english", or the words.
        idf: For "tfidf": the `digest` of a `DocumentFrequencies`, or "jieba" for the table of the
            installed jieba, the default of "jieba-keywords"; it becomes "jieba:" and the digest of
            that table.
        missing: A feature that is not in that table has its highest value ("default"; the median of
            given values) or is an error ("error").
        language: "tr" or "az": the capital of the dotless letter is I, of the dotted one it is İ.
        fold_chinese: Write Chinese in "simplified" or "traditional" characters first (an extra);
            it becomes that, ":" and the release of OpenCC.
        dictionary: Words that jieba's dictionary lacks, for tokens of jieba: each a word, and its
            frequency after a space if it should not be found by jieba's own rule, as in the lines
            of jieba.load_userdict.
        ignore: What is left out of a text first, some of "accents" (of Latin, Greek and Cyrillic
            letters), "digits" (each counts as 0), "joiners" (U+200C, U+200D), "tatweel",
            "vowel-signs" (of Arabic and Hebrew) and "zero-width" (U+200B, soft hyphens).

    Raises:
        RecipeError: For a value outside the lists and ranges above.

    Example:
        >>> Recipe(bits=128).words
        2
    """

    normalize: str = "NFKC"
    casefold: bool = True
    tokens: str = "words"
    ngram: int = 3
    weight: str = "set"
    hash: str = "xxh3"
    bits: int = 64
    seed: int = 0
    tie: str = "zero"
    preset: str | None = None
    top: int | None = None
    stopwords: str | tuple[str, ...] | None = None
    idf: str | None = None
    missing: str = "default"
    language: str | None = None
    fold_chinese: str | None = None
    dictionary: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be computed."""
        _one_of("normalize", self.normalize, NORMAL_FORMS)
        _one_of("tie", self.tie, TIES)
        if not isinstance(self.casefold, bool):
            raise RecipeError(f"casefold is {self.casefold!r}: use True or False")
        _in_range("ngram", self.ngram, 1, MAX_NGRAM)
        _in_range("bits", self.bits, 1, MAX_BITS)
        if self.top is not None:
            _in_range("top", self.top, 1, MAX_NGRAM)
        _check_hash(self.hash, self.seed, None if self.preset else self.bits)
        _check_words(self)
        _check_preset(self)

    @property
    def words(self) -> int:
        """The number of uint64 words of a fingerprint."""
        return -(-self.bits // 64)

    @property
    def digest(self) -> str:
        """The digest of the recipe, 16 hexadecimal digits; stored with every fingerprint."""
        return hashlib.blake2b(self.to_json().encode(), digest_size=8).hexdigest()

    def to_json(self) -> str:
        """The recipe as canonical JSON: sorted keys, no spaces, versions included.

        Example:
            >>> Recipe.from_json(Recipe(ngram=2).to_json()) == Recipe(ngram=2)
            True
        """
        fields = dataclasses.asdict(self)
        for name, default in LATER_FIELDS.items():
            if fields[name] == default:
                del fields[name]
        value = fields | {"unicode": UNICODE_VERSION, "version": RECIPE_VERSION}
        return json.dumps(value, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Recipe:
        """Read a recipe from JSON; fields that are absent take their defaults.

        Raises:
            RecipeError: If it is not a text, is not a JSON object, names an unknown field, or was
                written for another recipe version or Unicode version.

        Example:
            >>> Recipe.from_json(Recipe(ngram=1).to_json()) == Recipe(ngram=1)
            True
        """
        if not isinstance(text, str | bytes | bytearray):
            raise RecipeError(
                f"a recipe is {type(text).__name__}: {text!r:.60}: pass JSON, as to_json writes it"
            )
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RecipeError(f"a recipe is not valid JSON: {error}") from None
        if not isinstance(value, dict):
            raise RecipeError(f"a recipe is a JSON object, not {type(value).__name__}")
        _same_version("recipe version", value.pop("version", RECIPE_VERSION), RECIPE_VERSION)
        _same_version("Unicode version", value.pop("unicode", UNICODE_VERSION), UNICODE_VERSION)
        names = {field.name for field in dataclasses.fields(cls)}
        if unknown := sorted(set(value) - names):
            raise RecipeError(f"unknown recipe fields {unknown}: known are {sorted(names)}")
        return cls(**value)


def recipe_of(recipe: Recipe | None) -> Recipe:
    """Give a caller's recipe, or the default one for None.

    Raises:
        RecipeError: If it is something else, such as the name of a preset.
    """
    if recipe is None:
        return _DEFAULT
    if not isinstance(recipe, Recipe):
        raise RecipeError(
            f"recipe is {recipe!r:.60}: pass a neardup.Recipe, or neardup.preset(name)"
        )
    return recipe


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise RecipeError(f"{name} is {value!r}: use one of {', '.join(allowed)}")


def _in_range(name: str, value: Any, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise RecipeError(f"{name} is {value!r}: use a whole number from {low:,} to {high:,}")


def _check_hash(name: Any, seed: Any, bits: int | None) -> None:
    if not isinstance(name, str):
        raise RecipeError(f"hash is {name!r}: use one of {', '.join(HASHES)}")
    hash_ = find_hash(name)
    _in_range("seed", seed, 0, 2**64 - 1)
    if seed >> hash_.seed_bits:
        limit = f"a seed of {hash_.seed_bits} bits" if hash_.seed_bits else "no seed"
        raise RecipeError(f"seed is {seed!r}: the hash {name} takes {limit}")
    as_it_is = bits is not None and (hash_.bits >= 64 or bits <= hash_.bits)
    if hash_.unfit and as_it_is:
        message = (
            f"the hash {name} is unfit for SimHash: {hash_.unfit};"
            " docs/reference/hashes.md measures it"
        )
        warnings.warn(message, UnfitHashWarning, stacklevel=5)


def _check_preset(recipe: Recipe) -> None:
    if recipe.preset is not None:
        from neardup.fingerprinting.libraries.table import check

        changed = {
            field.name: getattr(recipe, field.name)
            for field in dataclasses.fields(recipe)
            if field.name != "preset" and getattr(recipe, field.name) != field.default
        }
        check(recipe, changed)


def _check_words(recipe: Recipe) -> None:
    if recipe.tokens not in TOKENISERS or recipe.weight not in WEIGHTS:
        _check_choices(recipe)
    elif recipe.idf is not None or recipe.missing != "default":
        raise RecipeError(f"idf is {recipe.idf!r} and missing {recipe.missing!r}: for tfidf only")
    if recipe.stopwords is not None:
        from neardup.features.stopwords import named_list

        if recipe.tokens == "chars":
            raise RecipeError("stopwords need words: use other tokens than chars")
        object.__setattr__(recipe, "stopwords", named_list(recipe.stopwords))
    if recipe.language is not None:
        _one_of("language", recipe.language, LANGUAGES)
        if not recipe.casefold:
            raise RecipeError(f"language is {recipe.language!r}: it only matters with casefold")
    if recipe.ignore is not None:
        from neardup.features.rewrite import ignored_names

        object.__setattr__(recipe, "ignore", ignored_names(recipe.ignore))
    if recipe.dictionary is not None:
        from neardup.features.tokens import checked_dictionary

        object.__setattr__(recipe, "dictionary", checked_dictionary(recipe))
    if recipe.fold_chinese is not None:
        from neardup.features.rewrite import named_conversion

        object.__setattr__(recipe, "fold_chinese", named_conversion(recipe.fold_chinese))


def _check_choices(recipe: Recipe) -> None:
    from neardup.features.tokens import check_tokens
    from neardup.features.weights import check_weight

    check_tokens(recipe.tokens)
    if recipe.tokens == "jieba-keywords" and recipe.ngram != 1:
        raise RecipeError(f"ngram is {recipe.ngram}: keywords are single tokens, use ngram 1")
    if recipe.tokens == "jieba-keywords" and recipe.weight == "tfidf" and recipe.idf is None:
        object.__setattr__(recipe, "idf", "jieba")
    check_weight(recipe)
    if recipe.idf == "jieba":
        from neardup.features.frequency_table import jieba_name

        object.__setattr__(recipe, "idf", jieba_name())


def _same_version(what: str, version: Any, ours: Any) -> None:
    if version != ours:
        raise RecipeError(f"{what} {version!r}: this neardup computes {ours!r} only")


_DEFAULT: Final = Recipe()
