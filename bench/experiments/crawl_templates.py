"""What the template of a site does to the similarity of its pages, and what extraction undoes.

    python bench/experiments/crawl_templates.py [FOLDER...]

Pages are articles of 60 to 600 words with words of their own, in one template: a menu of links, a
column of other headlines and a footer. Printed is the mean Jaccard similarity (runs of three words)
of two pages with different articles, and of two with the same article of which one word in fifty
was changed and whose template differs as that of another site does. Of a folder, of the pages of
one site, it is the mean of pairs among 60 of them, and how fast they are read.
"""

from __future__ import annotations

import itertools
import random
import statistics
import sys
import time
import warnings
from pathlib import Path

import neardup as nd
from neardup.documents.markup import extracted

ARTICLES = 40
SIZES = (60, 200, 600)
TEMPLATES = (100, 400)
READ = ("none", "all", "main", "trafilatura")
"""As `--extract` takes them."""
PAGES = 60
MOST_BYTES = 300_000


def words(draw: random.Random, count: int) -> str:
    """Words with the odd sentence, since extraction looks at sentences."""
    return " ".join(
        f"w{draw.randrange(20_000)}{'.' if at % 12 == 11 else ''}" for at in range(count)
    )


def template(size: int, seed: int) -> tuple[str, str]:
    """What stands before and after an article: of so many words in all."""
    draw = random.Random(seed)
    links = "".join(f'<li><a href="/{at}">{words(draw, 4)}</a></li>' for at in range(size // 8))
    others = "".join(f'<a href="/n{at}">{words(draw, 8)}</a>' for at in range(size // 32))
    head = f"<html><head><title>{words(draw, 4)}</title></head><body><nav><ul>{links}</ul></nav>"
    foot = f"<aside>{others}</aside><footer>{words(draw, size // 4)}</footer></body></html>"
    return f"{head}<main><article>", f"</article></main>{foot}"


def page(article: str, around: tuple[str, str]) -> str:
    """An article in its template; a paragraph has some sentences."""
    sentences = article.split(". ")
    parts = [". ".join(sentences[at : at + 5]) for at in range(0, len(sentences), 5)]
    return f"{around[0]}<h1>{sentences[0]}</h1>{''.join(f'<p>{x}.</p>' for x in parts)}{around[1]}"


def changed(article: str) -> str:
    """One word in fifty is another."""
    result = article.split()
    result[25::50] = [f"x{at}" for at in range(len(result[25::50]))]
    return " ".join(result)


def mean(pairs: list[tuple[str, str]], extract: str) -> float:
    """Mean similarity of pages, read in one of three ways."""
    texts = ([extracted(each, extract) for each in pair] for pair in pairs)
    return statistics.mean(nd.compare(one, two).jaccard or 0.0 for one, two in texts)


def site(folder: str) -> None:
    """Print what is read of the pages of a site, and how fast."""
    files = sorted(x for x in Path(folder).rglob("*.html") if x.stat().st_size < MOST_BYTES)
    chosen = random.Random(0).sample(files, min(PAGES, len(files)))
    pages = [file.read_text(errors="replace") for file in chosen]
    nbytes = sum(map(len, pages))
    print(f"{folder}: {len(pages)} of {len(files)} pages, {nbytes / 1e6:.1f} MB")
    for extract in READ:
        extracted(pages[0], extract)
        start = time.process_time()
        texts = [extracted(each, extract) for each in pages]
        seconds = time.process_time() - start
        pairs = list(itertools.combinations(texts, 2))
        matches = statistics.mean(nd.compare(one, two).jaccard or 0.0 for one, two in pairs)
        rate = "" if extract == "none" else f"{nbytes / seconds / 1e6:8.1f} MB/s"
        print(f"    {extract:12}  {matches:6.3f}  {rate}", flush=True)


def main() -> None:
    """Print a row for each size, or for each way to read the pages of folders."""
    warnings.simplefilter(
        "ignore", nd.DoubtfulResultWarning
    )  # that markup is compared is the point
    if sys.argv[1:]:
        for folder in sys.argv[1:]:
            site(folder)
        return
    print("article  template  pair       " + "  ".join(f"{name:>11}" for name in READ))
    for size in SIZES:
        draw = random.Random(size)
        articles = [words(draw, size) for _ in range(ARTICLES)]
        for around in TEMPLATES:
            here, there = template(around, 1), template(around, 2)
            others = [(page(a, here), page(b, here)) for a, b in itertools.pairwise(articles)]
            copies = [(page(each, here), page(changed(each), there)) for each in articles]
            for name, pairs in (("different", others), ("same", copies)):
                cells = "  ".join(f"{mean(pairs, each):11.2f}" for each in READ)
                print(f"{size:7}  {around:8}  {name:9}  {cells}", flush=True)


if __name__ == "__main__":
    main()
