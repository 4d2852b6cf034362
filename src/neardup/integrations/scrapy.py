"""A Scrapy pipeline that drops or marks items near one seen before."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, Self

from neardup.errors import UsageError
from neardup.fingerprinting.question import Question
from neardup.integrations.columns import missing
from neardup.integrations.seen import ServedIndex, open_index

if TYPE_CHECKING:
    from concurrent.futures import Future

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from scrapy.statscollectors import StatsCollector

    from neardup.index.hits import Answer
    from neardup.integrations.seen import SeenIndex

try:
    from itemadapter import ItemAdapter
    from scrapy.exceptions import DropItem, NotConfigured
except ImportError:
    raise missing("scrapy", __name__) from None

__all__ = ["NeardupPipeline"]

_COMMIT_ROWS: Final = 256
_COMMIT_SECONDS: Final = 10.0
"""The most that a killed crawl loses: a number of added documents, or of seconds, whichever comes
first."""


class NeardupPipeline:
    """Scrapy pipeline: drops or marks an item whose text is near an earlier item's.

    Settings of the crawl:

    - `NEARDUP_INDEX`: the folder of the index, made if it does not exist. One crawl at a time. Or
      the URL of the service, for any number of crawls, with `NEARDUP_KEY` if it needs one.
    - `NEARDUP_SIMILARITY`, or `NEARDUP_QUESTION`, a file: what a new index is made for. An index
      that exists has its own question, and its default is that of `neardup index create`.
    - `NEARDUP_EXTRACT`: "main" or "all", where the text is HTML.
    - `NEARDUP_TEXT`, `NEARDUP_ID`: the fields with the text ("text") and the identity ("url").
    - `NEARDUP_MARK`: true sets the fields `near_duplicate_of` and `similarity` (or `distance`)
      and lets the item pass; else it is dropped.

    An item that is crawled again is not a duplicate of itself. Statistics: `neardup/new`, `seen`
    (near another one), `stored` (again, unchanged), `replaced` (again, changed) and `empty` (no
    words).

    Threads of its own use the index, so that the reactor never waits: one for a folder, eight for
    requests.

    Args:
        settings: Of the crawl.
        stats: Of the crawl.

    Example:
        >>> ITEM_PIPELINES = {"neardup.integrations.scrapy.NeardupPipeline": 300}
        >>> NEARDUP_INDEX = "seen"
    """

    def __init__(self, settings: BaseSettings, stats: StatsCollector) -> None:
        """Read the settings; `open_spider` opens the index."""
        self._settings, self._stats = settings, stats
        self._text, self._id = (
            settings.get("NEARDUP_TEXT", "text"),
            settings.get("NEARDUP_ID", "url"),
        )
        self._marks = settings.getbool("NEARDUP_MARK")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the pipeline for Scrapy.

        Raises:
            NotConfigured: Without `NEARDUP_INDEX`: the pipeline is left out.
        """
        if not crawler.settings.get("NEARDUP_INDEX"):
            raise NotConfigured("NEARDUP_INDEX is not set: name the folder of an index")
        if crawler.stats is None:
            raise NotConfigured("the crawler has no statistics yet")
        return cls(crawler.settings, crawler.stats)

    def open_spider(self, spider: Any = None) -> None:
        """Open the index; its thread compiles kernels first, and items wait for that."""
        del spider
        self._index = _opened(self._settings)
        self._committed = time.monotonic()
        workers = self._index.workers if isinstance(self._index, ServedIndex) else 1
        self._threads = ThreadPoolExecutor(workers, "neardup")
        self._threads.submit(self._index.warm_up)

    async def process_item(self, item: Any, spider: Any = None) -> Any:
        """Pass an item on, mark it or drop it.

        Raises:
            DropItem: If another item is near, unless items are marked.
            UsageError: If the item lacks the field of its identity or text.
        """
        del spider
        fields = ItemAdapter(item)
        for name in (self._id, self._text):
            if name not in fields:
                raise UsageError(
                    f"the item has no field {name!r}: set NEARDUP_ID and NEARDUP_TEXT to fields"
                    f" that all items have, of these {', '.join(map(str, fields))}"
                )
        work: Future[Answer] = self._threads.submit(
            self._offered, fields[self._id], fields[self._text]
        )
        answer = await asyncio.wrap_future(work)
        self._stats.inc_value(f"neardup/{answer.state}")
        if answer.near is None:
            return item
        near, closeness = answer.near
        by = "distance" if isinstance(closeness, int) else "similarity"
        if not self._marks:
            raise DropItem(f"near {near!r}: {by} {closeness:.4g}")
        fields["near_duplicate_of"], fields[by] = near, closeness
        return item

    def close_spider(self, spider: Any = None) -> None:
        """Commit and close the index; Scrapy waits for all items first."""
        del spider
        self._threads.shutdown()
        self._index.close()

    def _offered(self, identity: Any, text: Any) -> Answer:
        """The match of a text, offered in the index's thread."""
        answer = self._index.offer(identity, text)
        waited = time.monotonic() - self._committed
        if self._index.uncommitted >= _COMMIT_ROWS or waited >= _COMMIT_SECONDS:
            self._index.commit()
            self._committed = time.monotonic()
        return answer


def _opened(settings: BaseSettings) -> SeenIndex:
    similarity, file = settings.get("NEARDUP_SIMILARITY"), settings.get("NEARDUP_QUESTION")
    return open_index(
        settings["NEARDUP_INDEX"],
        None if similarity is None else float(similarity),
        None if file is None else Question.load(file),
        extract=settings.get("NEARDUP_EXTRACT"),
        key=settings.get("NEARDUP_KEY"),
    )
