"""Document frequencies: learned in one pass, saved, loaded, merged, read from jieba's format."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.cli import app
from neardup.cli.commands.idf import learn as cli_learn
from neardup.cli.commands.idf import merge
from neardup.errors import DataError, FileError, RecipeError, UsageError
from neardup.features import frequency_table
from neardup.fingerprinting import document_frequencies
from neardup.fingerprinting.fingerprint_files import read_fingerprints
from suite import JIT, needs_jit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WORDS = nd.Recipe(ngram=1)
SPACE = nd.Recipe(ngram=1, weight="count", bits=128)


def collections() -> st.SearchStrategy[list[str]]:
    document = st.lists(st.sampled_from("abcdefghij"), max_size=6).map(" ".join)
    return st.lists(document, max_size=12).map(lambda result: ["a", *result])


def learn(texts: list[str], limit: int = 100) -> nd.DocumentFrequencies:
    return nd.DocumentFrequencies.learn(texts, WORDS, limit=limit)


@given(collections())
def test_counts_are_those_of_the_documents(texts: list[str]) -> None:
    table = learn(texts)
    counts = Counter(word for text in texts for word in set(text.split()))
    documents = sum(1 for text in texts if text)
    assert (table.documents, table.missed, len(table)) == (documents, 0, len(counts))
    for word in "abcdefghijz":
        expected = math.log((1 + documents) / (1 + max(1, counts[word]))) + 1
        assert table.idf(word) == pytest.approx(expected, abs=2**-17)


@given(collections(), collections(), collections())
def test_merging_is_learning_from_all_in_any_order(
    one: list[str], two: list[str], three: list[str]
) -> None:
    a, b, c = learn(one), learn(two), learn(three)
    merged = a.merge(b).merge(c)
    assert merged.digest == a.merge(b.merge(c)).digest == c.merge(a).merge(b).digest
    assert merged.digest == learn([*one, *two, *three]).digest


@given(st.lists(collections(), min_size=1, max_size=6), st.integers(1, 6))
def test_with_a_limit_no_count_is_too_high_and_none_more_than_missed_too_low(
    parts: list[list[str]], limit: int
) -> None:
    learner = document_frequencies.FrequencyLearner(WORDS, limit)
    for part in parts:
        learner.add(pa.array(part, pa.large_string()))
        learner._count_pending()  # noqa: SLF001
    table = learner.finish()
    exact = learn([text for part in parts for text in part])
    counts = dict(zip(exact._keys.tolist(), exact._values.tolist(), strict=True))  # noqa: SLF001
    result = dict(zip(table._keys.tolist(), table._values.tolist(), strict=True))  # noqa: SLF001
    assert len(result) <= limit
    for key, count in counts.items():
        assert count - table.missed <= result.get(key, 0) <= count


@pytest.mark.parametrize("workers", [1, 3])
def test_batches_and_threads_change_nothing(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_frequencies, "PENDING", 50)
    texts = [f"word{i % 17} word{i % 5} other{i}" for i in range(300)]
    whole = nd.DocumentFrequencies.learn(texts, WORDS, limit=60, workers=workers)
    learner = document_frequencies.FrequencyLearner(WORDS, 60)
    for at in range(0, 300, 7):
        learner.add(pa.array(texts[at : at + 7], pa.large_string()))
    assert learner.finish().digest == whole.digest
    assert whole.missed > 0


def test_a_saved_table_loads_as_it_was(tmp_path: Path) -> None:
    path = str(tmp_path / "news.idf")
    table = learn(["a b", "b c"])
    table.save(path)
    loaded = nd.DocumentFrequencies.load(path)
    assert (loaded.digest, loaded.documents, loaded.space) == (table.digest, 2, table.space)
    assert frequency_table.load_table(path).idf("b") == table.idf("b")
    assert [result.name for result in tmp_path.iterdir()] == ["news.idf"]


@pytest.mark.parametrize("damage", ["first", "middle", "last", "cut", "version"])
def test_a_damaged_table_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "news.idf"
    learn(["a b", "b c"]).save(str(path))
    whole = bytearray(path.read_bytes())
    at = {"first": len(frequency_table.MAGIC), "middle": len(whole) // 2, "last": -1, "version": 12}
    if damage == "cut":
        del whole[-8:]
    else:
        whole[at[damage]] ^= 3
    path.write_bytes(whole)
    with pytest.raises(DataError, match=r"news\.idf"):
        nd.DocumentFrequencies.load(str(path))


def test_a_file_that_is_not_there_is_a_file_error(tmp_path: Path) -> None:
    for read in (
        nd.DocumentFrequencies.load,
        nd.DocumentFrequencies.from_jieba,
        frequency_table.load_table,
    ):
        with pytest.raises(FileError, match="cannot read"):
            read(str(tmp_path / "absent"))


def test_jiebas_format_gives_words_their_values_and_others_the_median(tmp_path: Path) -> None:
    path = tmp_path / "idf.txt"
    path.write_bytes("\ufeff你好 1.5\r\n世界 3.25\n\nc++ 2.0\n".encode())
    table = nd.DocumentFrequencies.from_jieba(str(path))
    assert [table.idf(x) for x in ("你好", "世界", "c++", "other")] == [1.5, 3.25, 2.0, 2.0]
    assert frequency_table.load_table(str(path)).digest == table.digest
    again = tmp_path / "saved.idf"
    table.save(str(again))
    assert nd.DocumentFrequencies.load(str(again)).digest == table.digest
    with pytest.raises(UsageError, match="no counts to merge"):
        table.merge(learn(["a"]))
    with pytest.raises(UsageError, match="cannot merge 5: pass another"):
        table.merge(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "line", ["word", "word 0", "word -1", "word nan", "word inf", "a b 1", "word x", "\udcff 1"]
)
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "idf.txt"
    path.write_bytes(f"good 1.5\n{line}\n".encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match=r"idf\.txt:2: "):
        nd.DocumentFrequencies.from_jieba(str(path))


def test_an_empty_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "idf.txt"
    path.write_text("\n")
    with pytest.raises(DataError, match="no words"):
        nd.DocumentFrequencies.from_jieba(str(path))
    with pytest.raises(UsageError, match="no text has a feature"):
        learn(["", " "])
    with pytest.raises(UsageError, match="limit is 0"):
        learn(["a"], limit=0)
    with pytest.raises(UsageError, match="preset"):
        nd.DocumentFrequencies.learn(["a"], nd.preset("yanyiwu"))


def test_a_table_fits_every_recipe_of_the_same_features_and_no_other() -> None:
    table = nd.DocumentFrequencies.learn(["a b", "a c"], SPACE)
    for fields in ({"bits": 256}, {"hash": "md5"}, {"seed": 5}, {"top": 1}, {"tie": "one"}):
        recipe = nd.Recipe(ngram=1, weight="tfidf", idf=table.digest, **fields)
        assert nd.fingerprint("a b", recipe) == nd.fingerprint("b a", recipe)
    with pytest.raises(RecipeError, match="learn one with this recipe"):
        nd.fingerprint("a b", nd.Recipe(ngram=2, weight="tfidf", idf=table.digest))
    with pytest.raises(RecipeError, match="load this table first"):
        nd.fingerprint("a b", nd.Recipe(weight="tfidf", idf="0123456789abcdef"))
    with pytest.raises(RecipeError, match="tables of features"):
        table.merge(nd.DocumentFrequencies.learn(["a b"], nd.Recipe(ngram=2)))


def test_a_feature_that_is_not_in_the_table_can_be_an_error() -> None:
    table = learn(["a b", "a c"])
    recipe = nd.Recipe(ngram=1, weight="tfidf", idf=table.digest, missing="error")
    assert nd.fingerprint("a b", recipe) is not None
    with pytest.raises(RecipeError, match="'new' is not in the document frequencies"):
        nd.fingerprint("a new b", recipe)


@needs_jit
def test_large_tables_are_looked_up_alike() -> None:
    texts = [f"w{i % 50} w{i % 7}" for i in range(100)]
    small = nd.Recipe(ngram=1, weight="tfidf", idf=learn(texts).digest)
    plain = nd.fingerprints(texts, small)
    for top in (None, 1):
        in_python = nd.Recipe(ngram=1, weight="tfidf", idf=small.idf, missing="error", top=top)
        in_kernel = nd.Recipe(ngram=1, weight="tfidf", idf=small.idf, top=top)
        assert (nd.fingerprints(texts, in_python) == nd.fingerprints(texts, in_kernel)).all()
    others = [f"x{i} y{i}" for i in range(40_000 if JIT else 4_000)]
    many = learn([*texts, *others] * 2, limit=1 << 20)
    recipe = nd.Recipe(ngram=1, weight="tfidf", idf=many.digest)
    checked = nd.Recipe(ngram=1, weight="tfidf", idf=many.digest, missing="error")
    assert (nd.fingerprints(texts, recipe) == nd.fingerprints(texts, checked)).all()
    assert plain.shape == (100, 1)


def command(*args: object) -> None:
    app([str(arg) for arg in args], standalone_mode=False)


def test_the_command_line_learns_merges_and_uses_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["the cat sat", "the dog sat", "a bird", ""]
    news, one, two = (tmp_path / name for name in ("news.jsonl", "one.idf", "two.idf"))
    news.write_text("".join(f'{{"text": "{text}"}}\n' for text in texts))
    stops = tmp_path / "stops.txt"
    stops.write_text("the\n\na\n")
    command("idf", "learn", news, "-o", one, "--ngram", 1, "--stopwords", stops)
    command("idf", "merge", one, one, "-o", two)
    assert "4 features of 6 documents; digest" in capsys.readouterr().err
    recipe = nd.Recipe(
        ngram=1,
        stopwords=("the", "a"),
        weight="tfidf",
        top=1,
        idf=nd.DocumentFrequencies.load(str(two)).digest,
    )
    output = tmp_path / "news.parquet"
    options = ["--ngram", 1, "--weight", "tfidf", "--idf", two, "--top", 1, "--stopwords", stops]
    command("fingerprint", news, "-o", output, *options)
    values = read_fingerprints(str(output))
    assert values.recipe == recipe
    assert values.values.tolist() == nd.fingerprints(texts, recipe).tolist()
    few = tmp_path / "few.txt"
    few.write_text("cat 2.5\n")
    with pytest.raises(RecipeError, match="is not in the document frequencies"):
        command(
            "compare", f"{news}:1", f"{news}:2", *options[:4], "--idf", few, "--missing", "error"
        )
    (tmp_path / "recipe.json").write_text(recipe.to_json())
    command(
        "compare",
        f"{news}:1",
        f"{news}:2",
        "--recipe",
        tmp_path / "recipe.json",
        "--idf",
        two,
        "--json",
    )
    with pytest.raises(UsageError, match="exclude each other"):
        command("fingerprint", news, "-o", output, "--recipe", tmp_path / "recipe.json", "--top", 2)
    with pytest.raises(RecipeError, match="no list of this language"):
        command("compare", f"{news}:1", f"{news}:2", "--stopwords", "absent.txt")


@pytest.mark.parametrize("table", [cli_learn, merge], ids=["learn", "merge"])
def test_help_of_the_table_commands_shows_an_example(table: Callable[..., None]) -> None:
    assert f"neardup idf {table.__name__} " in (table.__doc__ or "")
