"""The service: "have I seen this?" over HTTP, for many clients of one index.

`server` runs it: sockets, signals, the order of starting and ending. `application` is what the
server calls for a request: who may ask, how large a body may be. `routes` has what each address
does, `messages` what requests and answers look like, `bodies` how they are read and written, one or
many. What is written goes through `committer`, one thread that commits what has come meanwhile.
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
