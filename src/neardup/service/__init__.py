"""The service: "have I seen this?" over HTTP, for many clients of one index.

`server` runs it: sockets, signals, the order of starting and ending. `application` is what the
server calls for a request: who may ask, how large a body may be. `operations` has the work of each
address, `messages` the form of requests and answers, `bodies` reads and writes them, one or many.
All writes go through `committer`, one thread that commits what has arrived.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from neardup.runtime.lazy import lazily

if TYPE_CHECKING:
    from neardup.service.server import serve
    from neardup.service.settings import Limits, Settings

__all__ = ["Limits", "Settings", "serve"]

_HOMES: Final = {"server": ("serve",), "settings": ("Limits", "Settings")}
__getattr__ = lazily(__name__, _HOMES)
