"""Lines that several documents have: `neardup lines`, plain Python and datatrove, processor time.

    python bench/experiments/repeated_passages.py ours|plain|datatrove DOCS.jsonl OUT

Lines of five words or more that two documents have are kept once. Each prints its processor seconds
(user and system, of this process and those it starts) and how many bytes of text it cut.

- plain: NFKC, case folding and white space as here, a Counter of the lines of all documents in
  memory, then JSON read and written again.
- datatrove: its three steps of sentence deduplication on lines, one task, one worker; short lines
  count, and digits and punctuation do not.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import unicodedata
from collections import Counter
from pathlib import Path

LEAST_WORDS = 5
SEEN_IN = 2


def ours(source: Path, out: Path) -> None:
    """`neardup lines`, in this process."""
    from neardup.cli import app

    options = f"--unit line --seen-in {SEEN_IN} --min-words {LEAST_WORDS} --workers 1"
    app(["lines", str(source), "-o", str(out), *options.split()], standalone_mode=False)


def normal(line: str) -> str:
    """A line as it is compared."""
    return " ".join(unicodedata.normalize("NFKC", line).casefold().split())


def plain(source: Path, out: Path) -> None:
    """Two passes and a Counter."""
    counts: Counter[str] = Counter()
    with source.open(encoding="utf-8") as file:
        for record in file:
            lines = {normal(line) for line in json.loads(record)["text"].splitlines()}
            counts.update(line for line in lines if line.count(" ") >= LEAST_WORDS - 1)
    removed = {line for line, count in counts.items() if count >= SEEN_IN}
    seen: set[str] = set()
    with source.open(encoding="utf-8") as file, out.open("w", encoding="utf-8") as target:
        for record in file:
            fields = json.loads(record)
            kept = []
            for line in fields["text"].splitlines(keepends=True):
                key = normal(line)
                if key in removed and key in seen:
                    continue
                seen.add(key)
                kept.append(line)
            fields["text"] = "".join(kept)
            target.write(json.dumps(fields, ensure_ascii=False) + "\n")


def datatrove(source: Path, out: Path) -> None:
    """Signatures, duplicates, filter."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import (
        SentDedupConfig,
        SentenceDedupFilter,
        SentenceDedupSignature,
        SentenceFindDedups,
    )
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers.jsonl import JsonlWriter
    from datatrove.utils.hashing import HashConfig
    from datatrove.utils.word_tokenizers import WhitespaceTokenizer

    words = WhitespaceTokenizer()
    config = SentDedupConfig(
        n_sentences=1, split_sentences=False, min_doc_words=0, min_num_sentences=0,
        only_dedup_in_index=False, hash_config=HashConfig(hash_fc="sha1"),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        reader = JsonlReader(str(source.parent), glob_pattern=source.name)
        steps = [
            [reader, SentenceDedupSignature(f"{folder}/sigs", config=config, language=words)],
            [SentenceFindDedups(f"{folder}/sigs", f"{folder}/dups", config=config)],
            [
                reader,
                SentenceDedupFilter(f"{folder}/dups", config=config, language=words),
                JsonlWriter(str(out), "part.jsonl", compression=None),
            ],
        ]
        for number, step in enumerate(steps):
            logs = f"{folder}/logs{number}"
            LocalPipelineExecutor(step, tasks=1, workers=1, logging_dir=logs).run()


def text_bytes(path: Path) -> int:
    """Bytes of text in a file or a folder of records."""
    files = [path] if path.is_file() else sorted(path.rglob("*.jsonl"))
    texts = (json.loads(line)["text"] for file in files for line in file.open(encoding="utf-8"))
    return sum(len(text.encode()) for text in texts)


if __name__ == "__main__":
    name, source, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    {"ours": ours, "plain": plain, "datatrove": datatrove}[name](source, out)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(each.ru_utime + each.ru_stime for each in used)
    cut = text_bytes(source) - text_bytes(out)
    rate = seconds / (source.stat().st_size / 1e9)
    peak = used[0].ru_maxrss / 1024
    print(f"{name}: {seconds:.1f} cpu s, {rate:.0f} cpu s a GB, {peak:.0f} MiB, {cut:,} bytes cut")
