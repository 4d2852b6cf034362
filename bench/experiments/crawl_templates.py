"""What the template of a site does to the similarity of its pages, and what extraction undoes.

    python bench/experiments/crawl_templates.py

Pages are articles of 60 to 600 words with words of their own, in one template: a menu of links, a
column of other headlines and a footer. Printed is the mean Jaccard similarity (runs of three words)
of two pages with different articles, and of two with the same article of which one word in fifty
was changed and whose template differs as that of another site does.
"""

from __future__ import annotations

import itertools
import random
import statistics
import warnings

import neardup as nd
from neardup.documents.markup import extracted

ARTICLES = 40
SIZES = (60, 200, 600)
TEMPLATES = (100, 400)
READ = ("none", "all", "main")
"""As `--extract` takes them."""


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
    found = article.split()
    found[25::50] = [f"x{at}" for at in range(len(found[25::50]))]
    return " ".join(found)


def mean(pairs: list[tuple[str, str]], extract: str) -> float:
    """Mean similarity of pages, read in one of three ways."""
    texts = ([extracted(each, extract) for each in pair] for pair in pairs)
    return statistics.mean(nd.compare(one, two).jaccard or 0.0 for one, two in texts)


def main() -> None:
    """Print a row for each size."""
    warnings.simplefilter(
        "ignore", nd.DoubtfulResultWarning
    )  # that markup is compared is the point
    print("article  template  pair       " + "  ".join(f"{name:>6}" for name in READ))
    for size in SIZES:
        draw = random.Random(size)
        articles = [words(draw, size) for _ in range(ARTICLES)]
        for around in TEMPLATES:
            here, there = template(around, 1), template(around, 2)
            others = [(page(a, here), page(b, here)) for a, b in itertools.pairwise(articles)]
            copies = [(page(each, here), page(changed(each), there)) for each in articles]
            for name, pairs in (("different", others), ("same", copies)):
                cells = "  ".join(f"{mean(pairs, each):6.2f}" for each in READ)
                print(f"{size:7}  {around:8}  {name:9}  {cells}", flush=True)


if __name__ == "__main__":
    main()
