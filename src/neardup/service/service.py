"""One service: an index, its writing thread, its query threads, and its state."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET

from neardup.errors import NeardupError
from neardup.fingerprinting.explanation import compare, explain
from neardup.runtime.version import __version__
from neardup.service.bodies import decoded
from neardup.service.committer import Aging, Committer
from neardup.service.messages import Backup, ComparedTexts, ExplainedText, Terms
from neardup.service.openapi import openapi
from neardup.service.operations import AskFirst, AskNearest, AskQuery, Rows, Write
from neardup.service.pages import ask_page, compare_page
from neardup.service.problem_details import Problem
from neardup.service.service_metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.index import DurableIndex
    from neardup.service.settings import Settings

__all__ = ["Service"]

QUERY_THREADS: Final = 4
EXAMPLES: Final = ("a text of some words that is read before any other", "a text of some words")
_log: Final = logging.getLogger("neardup.service")
_compared: Final = msgspec.json.Decoder(ComparedTexts)
_explained: Final = msgspec.json.Decoder(ExplainedText)
_encode: Final = msgspec.json.Encoder(enc_hook=lambda value: value.item()).encode


class Service:
    """A service of one index.

    Args:
        index: Which; the service closes it.
        settings: How.
        loop: Where answers are waited for.
        has_keys: Whether clients need one.
    """

    def __init__(
        self, index: DurableIndex, settings: Settings, loop: asyncio.AbstractEventLoop,
        *, has_keys: bool,
    ) -> None:  # fmt: skip
        """Store the index and settings; nothing is answered before `warm_up`."""
        self._has_keys = has_keys
        self._index, self.settings, self.limits = index, settings, settings.limits
        self.digest = "none" if index.recipe is None else index.recipe.digest
        self.metrics = Metrics(index)
        self._is_warming, self._is_open, self._is_ending = True, False, False
        self._pool = ThreadPoolExecutor(QUERY_THREADS, "neardup-query")
        self._slow = ThreadPoolExecutor(self.limits.nearest, "neardup-nearest")
        self._committer: Committer | None = None
        if not settings.readonly:
            aging = None
            if settings.max_age is not None:
                aging = Aging(settings.max_age, settings.age_from == "seen")
            self._committer = Committer(index, loop, self.limits, self.metrics, aging)
            self.metrics.queue(self._committer_rows, self._committer_bytes)
        terms = Terms.of(index, self.limits)
        write: Callable[[Any], Rows] = lambda name: Write(  # noqa: E731
            name, index, self._committer, self._pool, terms, self.metrics
        )
        most = self.limits.questions
        self.operations: dict[str, Rows] = {
            "seen": write("seen"),
            "query": AskQuery(index, self._pool, terms, most),
            "first": AskFirst(index, self._pool, terms, most),
            "nearest": AskNearest(index, self._slow, terms, 4 * self.limits.nearest),
            "add": write("add"),
            "remove": write("remove"),
        }
        self._openapi: bytes | None = None

    @property
    def id_kind(self) -> str | None:
        """The kind of the ids, "int" or "str"; None for an empty index."""
        return self._index.id_kind

    @property
    def is_open(self) -> bool:
        """Whether requests are answered: true until the last connection is closed."""
        return self._is_open

    def why_not_ready(self) -> str | None:
        """The reason why `/readyz` refuses new clients; None if it does not."""
        if self._is_ending or not self._is_open:
            return f"the service is {'ending' if self._is_ending else 'starting'}"
        failure = None if self._committer is None else self._committer.failure
        return None if failure is None else f"writes are refused: {failure.detail}"

    def warnings(self) -> list[str]:
        """Warnings for operators about a service that answers."""
        error = self._index.stats()["last_background_error"]
        return [] if error is None else [f"the last merge failed: {error}"]

    def warm_up(self) -> float:
        """Compile and load all that requests run, in this thread; returns the seconds."""
        begin = time.perf_counter()
        try:
            self._index.warm_up(calls="all")
            recipe = self._index.recipe
            if recipe is not None:
                compare(*EXAMPLES, recipe)
                for other in (None, EXAMPLES[1]):
                    explain(EXAMPLES[0], other, recipe)
            self.openapi()
        finally:
            self._is_warming = False
        self._is_open = True
        return time.perf_counter() - begin

    def end(self) -> None:
        """Begin to end the service; open requests are still answered."""
        self._is_ending = True

    def close(self) -> None:
        """Write the queued documents and close the index, after any warm-up has ended.

        Nothing was written by then, and the end of the process closes it.
        """
        if self._committer is not None:
            self._committer.close()
        for pool in (self._pool, self._slow):
            pool.shutdown()
        if not self._is_warming:
            self._index.close()

    def describe(self) -> dict[str, Any]:
        """The description of the index: what it takes, its size, and the service's limits."""
        index, stats = self._index, self._index.stats()
        kept = ("removed", "ids", "bytes_on_disk", "free_disk_bytes", "tail_rows")
        recipe = index.recipe
        settings = self.settings
        with index.snapshot(committed=True) as seen:  # not what a crash could take back
            documents = len(seen)
        return {
            "by": index.by,
            index.by: index.similarity if index.by == "similarity" else index.distance,
            **({"measure": index.measure} if index.by == "similarity" else {"bits": index.bits}),
            "store": index.store,
            "extract": stats["extract"],
            "recipe": None if recipe is None else json.loads(recipe.to_json()),
            "digest": self.digest,
            "readonly": settings.readonly,
            "max_age": settings.max_age,
            "version": __version__,
            "documents": documents,
            **{name: stats[name] for name in kept},
            "segments": len(stats["segments"]),
            "merging": stats["merging"],
            "counters": stats["counters"],
            "limits": msgspec.to_builtins(self.limits),
        }

    async def compare(self, body: bytes) -> Any:
        """The comparison of two texts by the recipe of the index."""
        request = decoded(_compared, body)
        return await self._computed(
            lambda: compare(request.a, request.b, self._index.recipe).to_dict(),
            request.a,
            request.b,
        )

    async def explain(self, body: bytes) -> Any:
        """The explanation of the fingerprint of a text, or of a pair of texts."""
        request = decoded(_explained, body)
        other = None if request.other is UNSET else request.other
        return await self._computed(
            lambda: explain(request.text, other, self._index.recipe).to_dict(),
            request.text,
            other or "",
        )

    async def back_up(self, body: bytes) -> Backup:
        """Copy the last commit to a new folder, which the service names."""
        if body.strip() not in {b"", b"{}"}:
            raise Problem("invalid-document", "a backup takes {}: the service names its folder")
        folder = self.settings.backups
        if folder is None:
            raise Problem("no-backups", "the service was started without --backups")
        now = time.time()
        name = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now)) + f"{now % 1:.3f}Z"[1:]
        loop = asyncio.get_running_loop()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            await loop.run_in_executor(self._slow, self._index.backup, folder / name)
        except OSError as error:
            raise Problem("write-failed", str(error), retry_after=60) from None
        return Backup(name, len(self._index))

    def openapi(self) -> bytes:
        """The description of this service, OpenAPI 3.1."""
        if self._openapi is None:
            self._openapi = _encode(openapi(self._index, has_keys=self._has_keys))
        return self._openapi

    async def ask_page(self, fields: dict[str, str]) -> bytes:
        """The page that asks about a text and shows the state."""
        loop, text = asyncio.get_running_loop(), fields.get("text")
        return await loop.run_in_executor(self._slow, ask_page, self._index, self.metrics, text)

    async def compare_page(self, fields: dict[str, str]) -> bytes:
        """The page that compares two texts."""
        loop, texts = asyncio.get_running_loop(), (fields.get("first"), fields.get("second"))
        return await loop.run_in_executor(self._slow, compare_page, self._index, *texts)

    async def _computed(self, call: Callable[[], Any], *texts: str) -> Any:
        """The result of a call about texts, computed in a thread."""
        if self._index.recipe is None:
            raise Problem("invalid-document", "the index has no recipe: it reads no texts")
        size = sum(map(len, texts))
        if size > self.limits.text_characters:
            limit = self.limits.text_characters
            raise Problem(
                "too-large", f"texts have {size:,} characters, and the limit is {limit:,}"
            )
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._slow, lambda: _plain(call()))
        except NeardupError as error:
            raise Problem("invalid-document", str(error)) from None

    def _committer_rows(self) -> int:
        return 0 if self._committer is None else self._committer.rows

    def _committer_bytes(self) -> int:
        return 0 if self._committer is None else self._committer.nbytes


def _plain(value: Any) -> Any:
    """NumPy values as Python values."""
    return msgspec.json.decode(_encode(value))
