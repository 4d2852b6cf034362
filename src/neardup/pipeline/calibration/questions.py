"""The question that suits some files, judged by edits planted in a sample of their documents.

1. read all documents once and keep a random sample;
2. plant edits of known kinds and sizes in some of its documents;
3. try each candidate question: the edits that it finds, and the documents of the sample that it
matches with each other;
4. advise one, by a rule that uses only these figures.
"""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.documents import Rejects, rejects_doubt
from neardup.fingerprinting.question import DEFAULT_QUESTION, Question
from neardup.fingerprinting.recipe import Recipe
from neardup.pipeline.calibration.advice import read_options
from neardup.pipeline.calibration.choice import advise
from neardup.pipeline.calibration.edits import MOST_CHARACTERS, SMALL_KINDS, WORD_KINDS, Aim
from neardup.pipeline.calibration.sample import take_sample
from neardup.pipeline.calibration.trials import Measured, plant, try_questions
from neardup.pipeline.run.read_documents import begin_reading, open_inputs
from neardup.pipeline.run.run_outputs import output_set
from neardup.runtime.progress import Quiet, Stopwatch, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import InputFormat, ReadOptions
    from neardup.pipeline.calibration.sample import Sample
    from neardup.pipeline.run.rule import Limits
    from neardup.runtime.progress import Progress

__all__ = ["CANDIDATES", "ComparisonOptions", "Questions", "compare_questions"]

CANDIDATES: Final = (
    ("words", 1),
    ("words", 2),
    ("words", 3),
    ("words", 5),
    ("chars", 3),
    ("chars", 4),
    ("chars", 5),
)
"""Kinds of tokens, and the number of tokens in a feature."""
STEPS: Final = tuple(step / 20 for step in range(8, 20))
"""Thresholds."""
OTHER_MEASURES: Final = ("cosine", "containment")
"""Measures that are compared at the advised threshold, with the advised features."""
LEAST_DOCUMENTS: Final = 30
PLANTED: Final = 250
"""Documents with planted edits."""
COMPARED: Final = 6_000
"""The most documents that are compared with each other, if they have few characters."""
COMPARED_CHARACTERS: Final = 3_000_000


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """Options of a search for the best question.

    Args:
        aim: How much a copy may differ.
        usual: The question that stays unless another one is better.
        seed: Of the sample and the edits.
    """

    aim: Aim = field(default_factory=Aim)
    usual: Question = DEFAULT_QUESTION
    seed: int = 0

    @property
    def twice(self) -> Aim:
        """Twice the aim."""
        if self.aim.share is None:
            return Aim(None, 2 * (self.aim.words or 1))
        return Aim(min(0.5, 2 * self.aim.share))


@dataclass(frozen=True, slots=True)
class Questions:
    """The results of a sample for each candidate question.

    Attributes:
        documents: In all inputs.
        rejected: Records that could not be used.
        planted: Documents in which edits were planted.
        compared: Documents that were compared with each other.
        aim: How much a copy may differ, in words.
        tried: The results of each question.
        others: The advised question by other measures.
        usual: The question that stays unless another one is better.
        advised: The advised question, if there is one.
        why: The reason for the advice, or for none.
        unknown: Things that the figures do not show.
        command: What to run; empty where nothing is advised.
    """

    documents: int
    rejected: int
    planted: int
    compared: int
    aim: str
    tried: tuple[Measured, ...]
    others: tuple[Measured, ...]
    usual: Question
    advised: Measured | None
    why: str
    unknown: tuple[str, ...]
    command: str

    @property
    def rows(self) -> list[Measured]:
        """The questions with a line: the tightest of the best of each recipe, and the usual.

        A recipe without a suitable question has one line too if it comes near.
        """
        chosen = []
        for tokens, ngram in CANDIDATES:
            own = [
                each
                for each in self.tried
                if (each.question.recipe.tokens, each.question.recipe.ngram) == (tokens, ngram)
                and each.question not in {self.usual, getattr(self.advised, "question", None)}
            ]
            serving = [each for each in own if each.aim >= 0.95]
            if serving:
                chosen.append(max(serving, key=lambda each: each.question.similarity))
            elif own and (best := max(own, key=lambda each: each.aim)).aim >= 0.8:
                chosen.append(best)
        named = [each for each in self.tried if each.question == self.usual]
        if self.advised is not None and self.advised.question != self.usual:
            named.append(self.advised)
        return [*named, *chosen, *self.others]

    def to_dict(self) -> dict[str, Any]:
        """Everything, for `--json`."""

        def plain(each: Measured) -> dict[str, Any]:
            values = asdict(each)
            return values | {"question": _titled(each.question), "aim": each.aim}

        values = asdict(self) | {"usual": _titled(self.usual)}
        values["tried"] = [plain(each) for each in self.tried]
        values["others"] = [plain(each) for each in self.others]
        values["advised"] = None if self.advised is None else plain(self.advised)
        return values

    def __str__(self) -> str:
        """Lines for people."""
        looked = f"edits planted in {self.planted:,}, {self.compared:,} compared with each other"
        lines = [
            f"documents   {self.documents:,}: {looked}",
            f"aim         copies with at most {self.aim}",
            "",
            _HEAD,
        ]
        lines += [_line(each, self._mark(each)) for each in self.rows]
        lines += ["", *_LEGEND, ""]
        lines += [f"cannot tell: {shown(each)}" for each in self.unknown]
        if self.advised is None:
            advice = "judge some pairs by `neardup review IN... -o question.toml`"
            lines.append(f"no advice: {shown(self.why)}; {advice}")
            return "\n".join(lines)
        lines.append(f"advice: {_titled(self.advised.question)}: {shown(self.why)}")
        return "\n".join([*lines, f"use: {shown(self.command)}"])

    def _mark(self, each: Measured) -> str:
        marks = [" (default)"] if each.question == self.usual else []
        return "".join([*marks, *([" <-"] if each == self.advised else [])])


_GROUPS: Final = {
    "twice": tuple(f"2 x {kind}" for kind in WORD_KINDS),
    "sentence": SMALL_KINDS[:2],
    "spelling": SMALL_KINDS[2:6],
    "around": SMALL_KINDS[6:],
}
_COLUMNS: Final = (*WORD_KINDS, *_GROUPS, "spliced")
_HEAD: Final = (
    f"{'question':<26}"
    + "".join(f"{name:>9}" for name in _COLUMNS)
    + f"{'pairs':>9}{'hold':>6}{'unlike, in all':>22}"
)
_LEGEND: Final = (
    "Shares of planted copies that are found: words replaced, inserted, removed or moved as the",
    "aim says, and twice as many; a sentence added or cut; case, accents, punctuation or digits;",
    "with boilerplate, or the end cut off. spliced: found of documents of which two fifths are",
    "another's. pairs: of the sample's own; hold: the share of the pairs that their groups imply",
    "which match; unlike: pairs that are expected in all and agree in less than half of their",
    "words.",
)


def _titled(question: Question) -> str:
    recipe = question.recipe
    extra = "" if recipe.weight == "set" else f" {recipe.weight}"
    measure = "" if question.measure == "jaccard" else f" {question.measure}"
    return f"{recipe.tokens} {recipe.ngram}{extra}{measure}, {question.similarity:g}"


def _line(each: Measured, mark: str) -> str:
    shares = [each.found.get(kind) for kind in WORD_KINDS]
    for kinds in _GROUPS.values():
        some = [each.found[kind] for kind in kinds if kind in each.found]
        shares.append(float(np.mean(some)) if some else None)
    cells = "".join(f"{'-' if share is None else f'{share:.2f}':>9}" for share in shares)
    expected, low, high = each.expected
    between = "" if low == high else f" ({low:,.0f} to {high:,.0f})"
    return (
        f"{_titled(each.question) + mark:<26}{cells}{each.lookalikes:9.2f}{each.pairs:9,}"
        f"{each.signs[0]:6.2f}{f'{expected:,.0f}{between}':>22}"
    )


def compare_questions(
    paths: Sequence[str],
    request: ComparisonOptions,
    read: ReadOptions,
    limits: Limits,
    progress: Progress | None = None,
    format_name: InputFormat | str | None = None,
) -> Questions:
    """Find the question that suits some files.

    Args:
        paths: Inputs, as for `open_sources`.
        request: The options of the search.
        read: Which fields to read.
        limits: Threads, memory and temporary files.
        progress: Shows the progress.
        format_name: Format of all inputs; by default their extensions decide.

    Raises:
        UsageError: For values out of range.
        DataError, FileError: If a file cannot be read.
    """
    seen = progress or Quiet()
    watch = Stopwatch(seen)
    with ExitStack() as stack:
        sources = open_inputs(stack, paths, limits, format_name)
        rejects = Rejects(None, stack.enter_context(output_set(sources, limits)))
        begin_reading(sources, watch)
        sample = take_sample(sources, read, COMPARED, request.seed, rejects, seen)
    doubt = rejects_doubt(sample.documents, rejects.count)
    texts = [text for text in _mixed(sample) if text.strip()]
    recipes = len(_candidates(request.usual))
    watch.begin("try", recipes * sum(map(len, _compared(texts))))
    tried, others, advised, why = _tried(texts, sample.documents, request, limits, seen)
    unknown = [*_unknown(tried, request), *([] if doubt is None else [doubt])]
    command = ""
    if advised is not None:
        base = ["neardup", "dedup", *paths, "-o", "OUT", *read_options(read)]
        options = [] if advised.question == DEFAULT_QUESTION else advised.question.options()
        command = shlex.join([*base, *options])
    return Questions(
        documents=sample.documents,
        rejected=rejects.count,
        planted=min(PLANTED, len(texts)),
        compared=len(_compared(texts)),
        aim=str(request.aim),
        tried=tuple(tried),
        others=tuple(others),
        usual=request.usual,
        advised=advised,
        why=why,
        unknown=tuple(unknown),
        command=command,
    )


def _tried(
    texts: Sequence[str],
    documents: int,
    options: ComparisonOptions,
    limits: Limits,
    progress: Progress,
) -> tuple[list[Measured], list[Measured], Measured | None, str]:
    """All tried questions, the advised one by other measures, the advised one, and the reason."""
    import pyarrow as pa

    if len(texts) < LEAST_DOCUMENTS:
        why = f"{len(texts)} documents are too few to tell: {LEAST_DOCUMENTS} or more are needed"
        return [], [], None, why
    planted = plant(texts[:PLANTED], (options.aim, options.twice), options.seed)
    sample = pa.array(_compared(texts), pa.large_string())
    scale = documents * (documents - 1) / (len(sample) * (len(sample) - 1))
    workers, tried = limits.workers, []
    for recipe, steps in _candidates(options.usual):
        measure = options.usual.measure if recipe == options.usual.recipe else "jaccard"
        tried += try_questions(planted, sample, recipe, measure, steps, scale, workers)
        progress.advance(sum(map(len, _compared(texts))))
    advised, why = advise(tried, options.usual)
    others: list[Measured] = []
    if advised is not None:
        best = advised.question
        steps = [step for step in STEPS if step >= best.similarity]
        for measure in OTHER_MEASURES:
            own = try_questions(planted, sample, best.recipe, measure, steps, scale, workers)
            serving = [each for each in own if each.aim >= advised.aim - 0.01]
            others += sorted(serving, key=lambda each: each.question.similarity)[-1:]
    return tried, others, advised, why


def _candidates(usual: Question) -> list[tuple[Recipe, list[float]]]:
    """Recipes and their thresholds, the usual question's among them."""
    recipes = [Recipe(tokens=tokens, ngram=ngram) for tokens, ngram in CANDIDATES]
    if usual.recipe not in recipes:
        recipes.insert(0, usual.recipe)
    return [
        (recipe, sorted({*STEPS, *([usual.similarity] if recipe == usual.recipe else [])}))
        for recipe in recipes
    ]


def _mixed(sample: Sample) -> list[str]:
    """The documents in a random order."""
    order = np.argsort(sample.place, kind="stable")
    return [sample.texts[int(row)].as_py() for row in order]


def _compared(texts: Sequence[str]) -> list[str]:
    """The first documents, as many as are compared with each other."""
    some, characters = [], 0
    for text in texts:
        some.append(text[:MOST_CHARACTERS])
        characters += len(some[-1])
        if characters > COMPARED_CHARACTERS:
            break
    return some


def _unknown(tried: Sequence[Measured], options: ComparisonOptions) -> list[str]:
    """Sentences on what the figures do not show."""
    if not tried:
        return []
    more = f"whether documents that differ in more than {options.aim} are copies for you"
    sentences = [f"{more}; people's edits come in clusters, which every question finds sooner"]
    absent = [kind for kind in (*WORD_KINDS, *SMALL_KINDS) if kind not in tried[0].found]
    if absent:
        sentences.append(
            f"{', '.join(absent)}: no document of the sample can be edited in this way"
        )
    if max(each.pairs for each in tried) < LEAST_DOCUMENTS:
        sentences.append("how well groups hold together: hardly any documents of the sample match")
    return sentences
