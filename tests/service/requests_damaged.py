"""Damaged requests: `python tests/service/requests_damaged.py SECONDS` (`make serve-fuzz`)."""

from __future__ import annotations

import json
import random
import re
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from services import Service, words

__all__ = ["attack"]

ALLOWED: Final = {503, 507}
"""Of the statuses from 500 up."""
PIECES: Final = (
    *(b"\x00", b"\xff\xfe", b"\r\n", b"\r\n\r\n", b"\n", b"{", b"[" * 3000, b'"', b"\\ud800"),
    *(b"%00", b"1e999", b"-1", b"99999999999999999999", b"null", b"NaN", b"Content-Length: 5\r\n"),
    *(b"Transfer-Encoding: chunked\r\n", b"application/x-ndjson", b"vnd.apache.arrow.stream"),
    *(b"A" * 70_000, "\u0130\u200d\U0001f600".encode(), b"../../etc/passwd", b"http://[::1"),
)  # fmt: skip


def requests() -> list[bytes]:
    """Whole requests of every route."""
    text, result = words("fuzz"), list[bytes]()
    row = {"id": "a", "text": text}
    bodies: dict[str, object] = {
        "seen": row, "add": row, "remove": {"id": "a"}, "first": row,
        "query": {"text": text, "limit": 3, "similarity": 0.9}, "nearest": {"text": text, "n": 2},
        "compare": {"a": text, "b": text}, "explain": {"text": text, "other": "b"}, "backup": {},
    }  # fmt: skip
    for name, body in bodies.items():
        for many, kind in ((False, "json"), (True, "json"), (True, "x-ndjson")):
            data = json.dumps([body, body] if many and kind == "json" else body).encode()
            if many and kind != "json":
                data = data + b"\n" + data + b"\n"
            head = (
                f"POST /v1/{name} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/{kind}"
            )
            result.append(f"{head}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
    for path in ("/", "/compare", "/v1/index", "/livez", "/readyz", "/metrics", "/openapi.json"):
        result.append(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    for path, form in (("/", "text=one+two"), ("/compare", "first=one&second=two")):
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(form)}\r\n"
        kind = "Content-Type: application/x-www-form-urlencoded"
        result.append(f"{head}{kind}\r\n\r\n{form}".encode())
    return result


def damaged(data: bytes, chance: random.Random) -> bytes:
    """A request with up to four changes: bytes flipped, cut, doubled, moved, put in."""
    for _ in range(chance.randint(1, 4)):
        at, end = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
        byte, piece = bytes([chance.randrange(256)]), chance.choice(PIECES)
        changes = (
            data[:at] + byte + data[at + 1 :],
            data[:at] + data[end:],
            data[:end] + data[at:end] + data[end:],
            data[at:end] + data[:at] + data[end:],
            data[:at] + piece + data[at:],
        )
        data = chance.choice(changes)
        if not data:
            return b"\r\n"
    if chance.random() < 0.7:  # else the length is wrong too, mostly
        head, mark, body = data.partition(b"\r\n\r\n")
        length = b"Content-Length: %d" % len(body)
        data = re.sub(rb"Content-Length: \d+", length, head, count=1) + mark + body
    return data


def attack(folder: Path, seconds: float, seed: int) -> int:
    """Send damaged requests for so long; how many were sent."""
    chance, whole, sent = random.Random(seed), requests(), 0
    with Service(folder / "index", "--backups", str(folder / "backups")) as service:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            data = damaged(chance.choice(whole), chance)
            sent += 1
            with socket.create_connection(("127.0.0.1", service.port), 60) as client:
                try:
                    client.sendall(data)
                    client.shutdown(socket.SHUT_WR)
                    answer = client.makefile("rb").read(1 << 16)
                except TimeoutError:
                    raise AssertionError((seed, data[:3000])) from None
                except OSError:  # closed before all was read
                    continue
            for status in re.findall(rb"^HTTP/1\.1 (\d+)", answer, re.MULTILINE):
                assert int(status) < 500 or int(status) in ALLOWED, (seed, data[:3000], answer)
        row = {"id": "alive", "text": words("alive")}
        assert service.ask("seen", row)["state"] in {"new", "stored"}
        assert service.client.get("/readyz").status_code == 200
        assert service.stop() == 0
    assert "Traceback" not in "".join(service.log)
    return sent


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        count = attack(Path(place), float(sys.argv[1]), random.SystemRandom().getrandbits(32))
        print(f"{count} damaged requests: nothing fell")  # noqa: T201
