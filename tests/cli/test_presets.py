"""The command line takes presets and names of hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from neardup.cli import app, main
from neardup.errors import RecipeError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

BLAR = "How are you? I Am fine. blar blar blar blar blar Thanks."


def run(tmp_path: Path, *arguments: str) -> str:
    """Run a command on one document; its standard error."""
    source = tmp_path / "in.jsonl"
    source.write_text(f'{{"text": "{BLAR}"}}\n')
    command, *rest = arguments
    output = {"dedup": "out.jsonl", "fingerprint": "out.parquet"}[command]
    result = CliRunner().invoke(
        app, [command, str(source), "-o", str(tmp_path / output), *rest], standalone_mode=False
    )
    if result.exception is not None:
        raise result.exception
    return result.stderr


def test_fingerprint_takes_a_preset(tmp_path: Path) -> None:
    run(tmp_path, "fingerprint", "--preset", "pypi-simhash")
    table = pq.read_table(tmp_path / "out.parquet")
    assert table["fingerprint"].to_pylist() == [8440240427182201978]


def test_dedup_takes_a_preset_with_a_distance_only(tmp_path: Path) -> None:
    run(tmp_path, "dedup", "--preset", "gaoya", "--distance", "3")
    for options in ([], ["--similarity", "0.8"], ["--distance", "3", "--verify", "0.8"]):
        with pytest.raises(UsageError, match="--preset gives fingerprints only: pass --distance"):
            run(tmp_path, "dedup", "--preset", "gaoya", *options)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="did you mean pypi-simhash"):
        run(tmp_path, "fingerprint", "--preset", "pypi-simash")
    with pytest.raises(RecipeError, match="the preset gaoya gives 64 or 128"):
        run(tmp_path, "fingerprint", "--preset", "gaoya", "--bits", "256")
    with pytest.raises(UsageError, match="--recipe and --preset exclude each other"):
        run(tmp_path, "fingerprint", "--preset", "gaoya", "--recipe", "r.json")
    with pytest.raises(RecipeError, match="hash is 'murmur': did you mean murmur3"):
        run(tmp_path, "fingerprint", "--hash", "murmur")


BAD_OPTIONS = [
    ("--preset pypi-simash", 2, "did you mean pypi-simhash"),
    ("--preset gaoya --bits 65", 2, "bits is 65: the preset gaoya gives 64"),
    ("--hash xxh4", 2, "did you mean xxh64 or xxh3?"),
    ("--bits 0", 2, "bits is 0: use a whole number from 1 to 32,767"),
    ("--bits -1", 2, "--bits is '-1': use a whole number or auto"),
    ("--weight tfidf", 2, "weight is 'tfidf': pass idf"),
    ("--ngram 1 --weight tfidf --idf bad.txt", 1, "bad.txt:2: 'are -1' is not a word, a space"),
    ("--ngram 1 --weight tfidf --idf nan.txt", 1, "nan.txt:1: 'how nan' is not a word, a space"),
    ("--ngram 1 --weight tfidf --idf absent.txt", 3, "cannot read absent.txt"),
    (
        "--ngram 1 --weight tfidf --idf few.txt --missing error",
        2,
        "'you' is not in the document frequencies",
    ),
]


@pytest.mark.parametrize("command", ["fingerprint", "dedup", "explain"])
@pytest.mark.parametrize(("options", "code", "message"), BAD_OPTIONS)
def test_bad_options_get_one_clear_line(
    command: str,
    options: str,
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    (tmp_path / "in.txt").write_text("how are you")
    for name, lines in {
        "few": "how 2\nare 1\n",
        "bad": "how 2\nare -1\n",
        "nan": "how nan\n",
    }.items():
        (tmp_path / f"{name}.txt").write_text(lines)
    output = {"dedup": ["-o", "out/"], "fingerprint": ["-o", "out.parquet"], "explain": []}[command]
    distance = ["--distance", "3"] if command == "dedup" else []
    monkeypatch.setattr(
        "sys.argv", ["neardup", command, "in.txt", *output, *distance, *options.split()]
    )
    with pytest.raises(SystemExit) as stopped:
        main()
    messages = capsys.readouterr().err.splitlines()
    assert stopped.value.code == code
    assert len(messages) == 1
    assert messages[0].startswith("neardup: ")
    assert message in messages[0]
    assert not list(tmp_path.glob("out*"))


def test_an_unfit_hash_is_warned_of_in_one_line(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.json"
    recipe.write_text('{"hash": "fnv1"}')
    for options in (["--hash", "fnv1"], ["--recipe", str(recipe)]):
        message = run(tmp_path, "fingerprint", *options)
        assert message.startswith("neardup: warning: the hash fnv1 is unfit for SimHash: ")
        assert message.count("neardup: warning") == 1
