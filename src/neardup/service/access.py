"""Access rules of the service: keys, host names and page origins."""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import ipaddress
import os
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias

from neardup.errors import DataError, FileError, UsageError
from neardup.service.problem_details import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from neardup.service.settings import Settings

__all__ = ["Access", "Right", "is_loopback"]

Right: TypeAlias = Literal["read", "write"]
LEAST_KEY: Final = 16
_FILE_FORM: Final = "each line has `read KEY` or `write KEY`"


@functools.lru_cache(256)
def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Access:
    """The rules that decide who may call the service.

    Args:
        keys: (right, key) of each key.
        host: The address that is listened on.
        origin: Of pages that may call.
    """

    def __init__(
        self, keys: Iterable[tuple[Right, str]], host: str, origin: str | None = None
    ) -> None:
        """Store the keys and the names under which the service answers.

        Raises:
            UsageError: For an address that others reach where there are no keys.
        """
        self._keys = [(right, _digest(key.encode())) for right, key in keys]
        if not self._keys and not is_loopback(host):
            raise UsageError(
                f"--host {host} is reached from other machines, and there are no keys: give --keys"
                f" FILE ({_FILE_FORM}), or set NEARDUP_KEY"
            )
        self.origin = None if origin is None else origin.encode()

    @classmethod
    def of(cls, settings: Settings, environment: Mapping[str, str] = os.environ) -> Self:
        """The access rules with the keys of a file and of the environment.

        Raises:
            FileError: If the file cannot be read.
            DataError: If it has something else than keys.
            UsageError: See the constructor.
        """
        keys = list(_in_file(settings.keys)) if settings.keys is not None else []
        rights: tuple[tuple[Right, str], ...] = (
            ("write", "NEARDUP_KEY"),
            ("read", "NEARDUP_READ_KEY"),
        )
        for right, name in rights:
            if value := environment.get(name, ""):
                keys.append((right, _checked(value, name)))
        return cls(keys, settings.host, settings.origin)

    @property
    def has_keys(self) -> bool:
        """Whether the service requires a key."""
        return bool(self._keys)

    def check(self, headers: dict[bytes, bytes], right: Right | None) -> None:
        """Refuse a request that the rules do not allow.

        Args:
            headers: Of the request, names in lower case.
            right: What it needs; None: anybody may.

        Raises:
            Problem: Why.
        """
        origin = headers.get(b"origin")
        if origin is not None and origin != self.origin and not _is_own(origin, headers):
            raise Problem("origin-not-allowed", f"the page's origin is {_text(origin)}")
        if not self._keys:
            # A page under its own name can be made to point here (DNS rebinding).
            host = headers.get(b"host", b"")
            if not is_loopback(_text(host.rpartition(b":")[0] if _has_port(host) else host)):
                raise Problem("host-not-allowed", f"the request is for {_text(host)!r}")
        elif right is not None:
            self._check_key(headers, right)

    def rights(self, key: bytes) -> set[Right]:
        """The rights of a key; empty for a key that the service does not know."""
        key_digest = _digest(key)
        # All keys are compared, each in constant time: how long it takes says nothing of any.
        rights = {each for each, digest in self._keys if hmac.compare_digest(key_digest, digest)}
        return {"read", "write"} if "write" in rights else rights

    def _check_key(self, headers: dict[bytes, bytes], right: Right) -> None:
        rights = self.rights(_key_in(headers.get(b"authorization", b"")))
        if not rights:
            raise Problem(
                "key-missing",
                "Authorization has no key of this service",
                headers=(
                    (b"www-authenticate", b"Bearer"),
                    (b"www-authenticate", b'Basic realm="neardup: the key is the password"'),
                ),
            )
        if right == "write" and "write" not in rights:
            raise Problem("key-only-reads", "the address writes, and the key may only read")


def _in_file(path: Path) -> Iterable[tuple[Right, str]]:
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise FileError(f"cannot read the keys in {path}: {why}") from None
    is_known = False
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        right = words[0]
        if len(words) != 2 or right not in {"read", "write"}:  # a key is in no message
            raise DataError(f"{path}:{number} has no key: {_FILE_FORM}")
        yield ("read" if right == "read" else "write"), _checked(words[1], f"{path}:{number}")
        is_known = True
    if not is_known:
        raise DataError(f"{path} has no keys: {_FILE_FORM}")


def _checked(key: str, where: str) -> str:
    if len(key) < LEAST_KEY or not key.isascii() or not key.isprintable() or " " in key:
        raise DataError(
            f"the key of {where} has {len(key)} characters or others than printable ASCII: use"
            f" {LEAST_KEY} or more, as `openssl rand -hex 24` makes them"
        )
    return key


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


def _key_in(authorization: bytes) -> bytes:
    """The key in an Authorization header, as a bearer token or as the password of a browser."""
    scheme, _, key = authorization.partition(b" ")
    if scheme.lower() == b"bearer":
        return key.strip()
    if scheme.lower() == b"basic":
        try:
            return base64.b64decode(key.strip(), validate=True).partition(b":")[2]
        except ValueError:
            pass
    return b""


def _is_own(origin: bytes, headers: dict[bytes, bytes]) -> bool:
    """Whether a page of this service sent the request: its origin has the host that was called."""
    return origin.partition(b"://")[2] == headers.get(b"host", b"")


def _has_port(host: bytes) -> bool:
    return b":" in host and not host.endswith(b"]")


def _text(value: bytes) -> str:
    return value[:100].decode("latin-1")
