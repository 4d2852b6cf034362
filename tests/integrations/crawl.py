"""A crawl of a site, its statistics and the pages that passed as JSON; see test_scrapy.py.

crawl.py SITE OUTPUT [NAME=VALUE ...]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy.crawler import CrawlerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator


class Site(scrapy.Spider):
    """Follows each link from the first page."""

    name = "site"

    def parse(self, response: Any) -> Iterator[Any]:
        """The article of a page, without menu and footer, and where the page leads."""
        paragraphs = response.css("article ::text").getall()
        if paragraphs:
            yield {"url": response.url, "text": " ".join(paragraphs), "page": response.text}
        yield from response.follow_all(css="a")


def main() -> None:
    """Crawl."""
    site, output, *settings = sys.argv[1:]
    Site.start_urls = [site]
    items: list[dict[str, Any]] = []
    process = CrawlerProcess(
        {
            "ITEM_PIPELINES": {"neardup.integrations.scrapy.NeardupPipeline": 300},
            "LOG_LEVEL": "ERROR",
            "TELNETCONSOLE_ENABLED": False,
            "DOWNLOAD_DELAY": 0,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
            **dict(each.split("=", 1) for each in settings),
        }
    )
    crawler = process.create_crawler(Site)

    def keep(item: dict[str, Any]) -> None:
        item.pop("page")
        items.append(item)

    crawler.signals.connect(keep, scrapy.signals.item_scraped, weak=False)
    process.crawl(crawler)
    process.start()
    stats = {key: value for key, value in crawler.stats.get_stats().items() if "time" not in key}
    Path(output).write_text(json.dumps({"stats": stats, "items": items}))


if __name__ == "__main__":
    main()
