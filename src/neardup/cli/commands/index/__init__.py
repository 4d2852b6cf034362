"""`neardup index`: creates, fills, queries and maintains a durable index."""

from __future__ import annotations

from neardup.cli.commands.index.care import backup, check, compact, expire, remove, restore, stats
from neardup.cli.commands.index.fill import add, create, filter_
from neardup.cli.commands.index.nearest import nearest
from neardup.cli.commands.index.plan import plan
from neardup.cli.commands.index.query import query
from neardup.cli.screen import tells_progress
from neardup.cli.signatures import Commands
from neardup.cli.small_inputs import PlainIfSmall

__all__ = ["app"]

app = Commands(
    name="index",
    help="Have I seen this? A durable index of documents or fingerprints.",
    no_args_is_help=True,
)
app.command()(create)
for long in (add, query, nearest):
    app.command(cls=PlainIfSmall)(tells_progress(long))
app.command("filter")(filter_)
for command in (remove, expire, stats, check, backup, restore, compact, plan):
    app.command()(command)
