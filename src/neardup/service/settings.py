"""Settings of a service: its limits, and the options of the command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003  # a dataclass field

__all__ = ["Limits", "Settings"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a request; a request over a limit is refused, never truncated.

    Args:
        body_bytes: Of a body that is not streamed, of one line of a stream, and of an Arrow stream,
            unpacked.
        head_bytes: Of a request's head, or of what frames its body; a few more may pass.
        text_characters: Of one document.
        id_characters: Of one id.
        batch_rows: Documents of one JSON array.
        cut_rows: Documents of one commit; a stream is committed in cuts of this many.
        cut_bytes: Bytes of one commit.
        queue_rows: Documents that wait for a commit.
        queue_bytes: Bytes that wait for a commit.
        questions: Queries that wait or run.
        nearest: Calls of `/v1/nearest` that run at once; each reads the whole index.
        head_seconds: Until a request's head is there.
        body_seconds: Between two pieces of a body.
        queue_seconds: Until a commit takes a document; then it is refused, and not stored.
        drain_seconds: Until connections are cut when the service ends.
    """

    body_bytes: int = 16 << 20
    head_bytes: int = 1 << 16
    text_characters: int = 4 << 20
    id_characters: int = 1024
    batch_rows: int = 10_000
    cut_rows: int = 512
    cut_bytes: int = 4 << 20
    queue_rows: int = 8192
    queue_bytes: int = 64 << 20
    questions: int = 1024
    nearest: int = 2
    head_seconds: float = 30
    body_seconds: float = 10
    queue_seconds: float = 30
    drain_seconds: float = 20


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a service.

    Args:
        host: Address to listen on; other than loopback it needs keys.
        port: 0 for one that is free.
        resp: Port for clients of Redis, 0 for one that is free; by default none.
        keys: File of keys, see `access`.
        origin: Of pages that may call the service from a browser; by default none.
        readonly: Only answer queries, while another process writes.
        backups: Folder that `POST /v1/backup` writes to; by default refused.
        max_age: Seconds after which a document is removed; by default kept for ever.
        age_from: What the age counts from: "added", or "seen", when it was last matched.
        log_requests: Write a line for each request, not only for those that failed.
        limits: See Limits.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    resp: int | None = None
    keys: Path | None = None
    origin: str | None = None
    readonly: bool = False
    backups: Path | None = None
    max_age: float | None = None
    age_from: str = "added"
    log_requests: bool = False
    limits: Limits = field(default_factory=Limits)
