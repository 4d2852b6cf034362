"""Write tests/compat/files/VERSION: what this version keeps on a disk, and what it answers of it.

    python tests/compat/files_of_versions.py

Run it once for a release. test_files_of_versions.py opens the files of all releases with today's
code and compares; they are never written again.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

import neardup as nd

FILES: Final = Path(__file__).resolve().parent / "files"
TEXTS: Final = {
    "en": "The harbour opened again on Monday after three days of storm and heavy rain.",
    "en-near": "The harbour opened again on Monday after three days of storm and heavy snow.",
    "de": "Der Hafen wurde am Montag nach drei Tagen Sturm und Regen wieder geöffnet.",
    "tr": "Liman üç gün süren fırtınanın ardından pazartesi günü yeniden açıldı.",
    "zh": "港口在三天的暴风雨之后于星期一重新开放。",
    "zh-near": "港口在三天的暴风雨之后于星期二重新开放。",
    "ar": "أعيد فتح الميناء يوم الاثنين بعد ثلاثة أيام من العاصفة.",
    "empty": "",
}
RECIPE: Final = nd.Recipe(tokens="chars", ngram=4, weight="log", bits=128, seed=7)
INDEXES: Final[dict[str, dict[str, Any]]] = {
    "distance": {"distance": 10, "recipe": nd.Recipe()},
    "similarity": {"similarity": 0.5, "recipe": nd.Recipe(ngram=2)},
    "texts": {"similarity": 0.3, "measure": "cosine", "recipe": nd.Recipe(), "store": "text"},
}
COMMANDS: Final = (
    "fingerprint documents.jsonl --id id -o fingerprints.parquet",
    "fingerprint documents.jsonl --id id -o wide.parquet --recipe recipe.json",
    "idf learn documents.jsonl -o idf.parquet",
    "dedup documents.jsonl --id id --similarity 0.5 --duplicates dropped.csv",
)


def main() -> None:
    """Write the files of this version, once."""
    folder = FILES / nd.__version__
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    documents = [json.dumps({"id": name, "text": text}) + "\n" for name, text in TEXTS.items()]
    (folder / "documents.jsonl").write_text("".join(documents), encoding="utf8")
    (folder / "recipe.json").write_text(RECIPE.to_json(), encoding="utf8")
    nd.Question(RECIPE, similarity=0.7).save(folder / "question.toml")
    for command in COMMANDS:
        subprocess.run([sys.executable, "-m", "neardup", *command.split()], cwd=folder, check=True)
    for name, options in INDEXES.items():
        write_index(folder / f"{name}.index", options)
    lines = json.dumps(answers(folder), indent=1, ensure_ascii=False)
    (folder / "expected.json").write_text(lines + "\n", encoding="utf8")


def answers(folder: Path) -> dict[str, Any]:
    """Read the files of a version and give what they answer, as JSON has it."""
    documents = (folder / "documents.jsonl").read_text(encoding="utf8").splitlines()
    texts = {each["id"]: each["text"] for each in map(json.loads, documents)}
    recipe = nd.Recipe.from_json((folder / "recipe.json").read_text(encoding="utf8"))
    indexes = sorted(folder.glob("*.index"))
    answer = {
        "digest": recipe.digest,
        "question": str(nd.Question.load(folder / "question.toml")),
        "idf": nd.DocumentFrequencies.load(folder / "idf.parquet").digest,
        "fingerprints": values_of(nd.fingerprints(list(texts.values()))),
        "wide": values_of(nd.fingerprints(list(texts.values()), recipe)),
        "indexes": {each.name: answers_of(each, texts) for each in indexes},
    }
    return cast("dict[str, Any]", json.loads(json.dumps(answer)))


def write_index(folder: Path, options: dict[str, Any]) -> None:
    """Write an index with a segment, rows in its log, a removed and a replaced document."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        nd.DurableIndex.open(Path(scratch, "index"), **options) as index,
    ):
        first = dict(list(TEXTS.items())[:4])
        index.add(list(first), list(first.values()))
        index.compact()
        rest = dict(list(TEXTS.items())[4:])
        index.add(list(rest), list(rest.values()))
        index.remove(["de"])
        index.add(["en"], [TEXTS["en"] + " Again."])
        index.commit()
        index.backup(folder)


def answers_of(folder: Path, texts: dict[str, str]) -> dict[str, Any]:
    """Ask an index for each text: what matches, and by how much."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = shutil.copytree(folder, Path(scratch, "index"))
        with nd.DurableIndex.open(copy) as index:
            hits = {name: index.query(text) for name, text in texts.items()}
            stored = [name for name in hits if name in index and index.store == "text"]
            kept = {name: index.content(name) for name in stored}
            return {"found": hits, "texts": kept}


def values_of(fingerprints: np.ma.MaskedArray[Any, Any]) -> list[str | None]:
    """Give rows of fingerprints as hexadecimal digits, null for a text without tokens."""
    rows = np.atleast_2d(np.ma.getdata(fingerprints).T).T
    empty = np.ma.getmaskarray(fingerprints).reshape(rows.shape)[:, 0]
    words = [[f"{word:016x}" for word in row] for row in rows.tolist()]
    return [None if none else " ".join(row) for row, none in zip(words, empty, strict=True)]


if __name__ == "__main__":
    main()
