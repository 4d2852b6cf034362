"""Hypothesis strategies for texts that try every rule of normalising and tokenising."""

# ruff: noqa: RUF001 - look-alike characters are what is tested

from __future__ import annotations

import sys

from hypothesis import strategies as st

if sys.version_info >= (3, 14):
    import unicodedata
else:
    import unicodedata2 as unicodedata

SEPARATORS = [chr(c) for c in range(128) if not chr(c).isalnum() and chr(c) != "_"]
SPACES = [
    *"\t\n\v\f\r \x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2003\u2009\u200a\u2028\u2029\u202f",
    *"\u205f\u3000\u200b\ufeff\u180e",
]
MARKS = [
    *"\u0300\u0301\u0302\u0304\u0307\u0308\u030a\u0316\u031b\u0323\u0327\u0328\u0331\u0334\u0338",
    *"\u0342\u0345\u034f\u0340\u0343\u0344\u035c\u0360\u0483\u05b7\u05bc\u05c1\u064b\u0651\u0670",
    *"\u0653\u093c\u094d\u09be\u0bbe\u0cd5\u0dcf\u0e31\u0e48\u0eb8\u102e\u1039\u17d2\u1a60\u20dd",
    *"\u20e3\u302a\u3099\u309a\uff9e\uff9f\ufe0e\ufe0f\u0f71\u0f72\u0f74\u0f80\U0001d165",
    *"\U0001d16e\U000110ba\U00011127\U00011133\U000113c2\U000113c9\U000114b0\U00016129",
    *"\U0001611e\U00016d67\U000e0101",
]
JAMO = [
    *"\u1100\u1112\u1113\u115f\u1160\u1161\u1175\u1176\u11a7\u11a8\u11c2\u11c3\ua960\ud7b0\ud7cb",
    *"\u3131\u3164\uffa0\uffa1\uffc2\uac00\uac01\uac1c\ud7a3\ud788",
]
LETTERS = {
    "latin": [*"abzAZ09_éÉÅÇñøŁſßẞıİIiǅŉǰẛᾳΐΰﬁﬃﬅﬆªºµ½²①Ⅷⅷ℃ℓ№Åʼˇˋ"],
    "greek": [*"αΑσςΣΆώΐᾳᾼᾈῼὌ"],
    "cyrillic": [*"мМяЯйЙёЁіІЇꙀᲀѠ"],
    "arabic": [*"ابتلاكةىيؤأﷺﷻﻻﷲﺀ٠٣"],
    "hebrew": [*"אבשךםיﬡשׁאַﭏ"],
    "indic": [*"कखगषज्ञक़रिীকোதொௌකෝಕೊഅ०९ༀགྷཱི"],
    "thai": [*"กขภาษาไทยำเแ๐๙ๆฯ"],
    "southeast": [*"ກຂຳໜໄຽ៛ខ្មែរកខမြန်မာငကᥐᦀᨠꪀ"],
    "han": [
        *"你好世界一〇々〆漢字𠀀𠮷𪜀𰀀豈冗﨎塚\uf900\ufa0e\U0002f800\U0002fa1d\U0003fffd\U00020000"
    ],
    "kana": [*"あアかがガはぱパーヽヾゝゞ〱ｱｶﾊｰﾞﾟ㌀㍿㋿ヷ𛀀"],
    "other_cjk": [*"ㄅㄚㆠꀀ𛅰𗀀𘬀"],
    "fullwidth": [*"ＡａＺｚ０９＿！，　￠￥"],
    "symbols": [*"…“”‘’—–·•€™®©⁄‿⁀、。！？«»"],
    "emoji": ["👨\u200d👩\u200d👧", "❤\ufe0f", "🇯🇵", "👍🏽", "1\ufe0f\u20e3", "#\ufe0f\u20e3", "☺"],
    "ignored": [*"\u00ad\u200c\u200d\u2060\u2064\u061c\u115f\u17b4\u180b\u3164\U000e0020\ufff0"],
    "odd": [*"\0\x01\x7f\x9f\u0378\ufdd0\ufffe\uffff\ufffd\ue000\U0001ffff\U0010ffff\U000e0fff"],
    "surrogates": ["\ud800", "\udbff", "\udc00", "\udfff", "\ud83d\ude00"],
    "exclusions": [*"\u0958\u09dc\u0a33\u0b5c\u0f43\u2126\u212b\u1fef\ufb1d\ufb4e\u2adc\U0001d15e"],
    "new": [*"\U000105c9\U00011383\U0001138e\U00011391\U000113c5\U000113c8\U00016121\U00016126"],
    "kirat_rai": [*"\U00016d63\U00016d67\U00016d68\U00016d69\U00016d6a"],
}
PHRASES = (
    """
the quick brown fox|The QUICK brown FOX|Straße STRASSE strasse|Ὀδυσσεύς ΟΔΥΣΣΕΎΣ|İstanbul ıI iİ
Москва\u0301 мʼята|السَّلَامُ عَلَيْكُم|שָׁלוֹם עֲלֵיכֶם|क्षत्रिय हिन्दी|ภาษาไทยไม่มีช่องว่าง|ພາສາລາວ
ភាសាខ្មែរ|မြန်မာဘာသာ|你好世界|株式会社ｶﾞｷﾞｸﾞ|がぎぐ か\u3099き\u3099|한국어 한국어|don't can't
user@example.com|a_b-c.d/e|x\u00ady|3.14 1,000|q\u0323\u0307\u0301
""".strip()
    .replace("\n", "|")
    .split("|")
)


def pieces() -> st.SearchStrategy[str]:
    """One character or a short fixed piece, from every script and oddity alike."""
    return st.one_of(
        *(st.sampled_from(group) for group in LETTERS.values()),
        st.sampled_from(MARKS),
        st.sampled_from(JAMO),
        st.sampled_from(SPACES),
        st.sampled_from(SEPARATORS),
        st.characters(),
    )


def mixed() -> st.SearchStrategy[str]:
    """Any pieces side by side."""
    return st.lists(pieces(), max_size=40).map("".join)


def words_of_one_script() -> st.SearchStrategy[str]:
    """Words within one script, with marks and separators between."""
    groups = st.sampled_from(sorted(LETTERS))
    letters = groups.flatmap(lambda name: st.lists(st.sampled_from(LETTERS[name]), max_size=12))
    word = letters.map("".join)
    between = st.sampled_from([*SPACES, *SEPARATORS, *MARKS, "\u00ad", "\u200d", "--", " \u0301"])
    return st.lists(st.tuples(word, between), max_size=10).map(
        lambda parts: "".join(word + gap for word, gap in parts)
    )


def ascii_texts() -> st.SearchStrategy[str]:
    """Pure ASCII; words of any length, all separators, lengths about the width of a vector."""
    length = st.sampled_from([1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 128, 240])
    word = st.tuples(st.sampled_from("aZ09_qX"), length).map(lambda pair: pair[0] * pair[1])
    gap = st.text(st.sampled_from(SEPARATORS), max_size=3)
    text = st.lists(st.tuples(word, gap), max_size=8).map(
        lambda parts: "".join(word + gap for word, gap in parts)
    )
    exact = st.tuples(text, st.sampled_from([63, 64, 65, 127, 128, 129])).map(
        lambda pair: (pair[0] + "ab c" * 33)[: pair[1]]
    )
    return text | exact | st.text(st.characters(max_codepoint=127), max_size=140)


def phrases() -> st.SearchStrategy[str]:
    """Real words, often repeated, so that equal features occur."""
    chosen = st.lists(st.sampled_from(PHRASES), min_size=1, max_size=6)
    repeats = st.integers(1, 4)
    return st.tuples(chosen, repeats, st.sampled_from(SPACES + SEPARATORS)).map(
        lambda parts: parts[2].join(parts[0] * parts[1])
    )


def transformed(text: str, form: str) -> str:
    """The text in another normal form; "none" leaves it."""
    return text if form == "none" else unicodedata.normalize(form, text)


def texts() -> st.SearchStrategy[str]:
    """Any text that a recipe may meet, lone surrogates included."""
    forms = st.sampled_from(["none", "none", "NFC", "NFD", "NFKD"])
    text = mixed() | words_of_one_script() | phrases()
    repeated = st.tuples(text, st.integers(2, 5)).map(lambda pair: " ".join([pair[0]] * pair[1]))
    kinds = [ascii_texts(), *[st.builds(transformed, text | repeated, forms)] * 2]
    return st.sampled_from(kinds).flatmap(lambda kind: kind)


def normalisation_texts() -> st.SearchStrategy[str]:
    """Texts in which neighbours combine, reorder or are excluded from combining; no surrogates."""
    groups = ("latin", "greek", "indic", "arabic", "kana", "exclusions", "new", "kirat_rai")
    letter = st.one_of(*(st.sampled_from(LETTERS[name]) for name in groups))
    character = st.characters(exclude_categories=["Cs"])
    return st.lists(
        letter
        | st.sampled_from(MARKS)
        | st.text(st.sampled_from(MARKS), min_size=1, max_size=30)
        | st.sampled_from(JAMO)
        | st.sampled_from(COMPOSING)
        | st.builds(transformed, character, st.sampled_from(["none", "NFD", "NFKD"])),
        max_size=12,
    ).map("".join)


def _composing() -> list[str]:
    """Every character that is, or is part of, a canonical decomposition; ideographs left out."""
    result = set()
    for c in map(chr, range(0x110000)):
        parts = unicodedata.decomposition(c)
        if parts and not parts.startswith("<") and "IDEOGRAPH" not in unicodedata.name(c):
            result |= {c, *(chr(int(part, 16)) for part in parts.split())}
    return sorted(result)


COMPOSING = _composing()
