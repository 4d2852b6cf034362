"""A rule and a choice in one, as tests draw and pass them."""

from __future__ import annotations

import dataclasses
from typing import Any

from neardup.pipeline import Choice, Rule

__all__ = ["Mode"]


@dataclasses.dataclass(frozen=True)
class Mode:
    """When documents match, and which are kept."""

    rule: Rule
    choice: Choice

    @classmethod
    def of(cls, **options: Any) -> Mode:
        """Both, from the options of `nd.dedup`."""
        names = {field.name for field in dataclasses.fields(Choice)}
        choice = {name: options.pop(name) for name in names & set(options)}
        return cls(Rule(**options), Choice(**choice))

    @property
    def both(self) -> tuple[Rule, Choice]:
        return self.rule, self.choice

    def replace(self, **changes: Any) -> Mode:
        return Mode.of(**self.options | changes)

    @property
    def options(self) -> dict[str, Any]:
        """As `nd.dedup` takes them."""
        values = (self.rule, self.choice)
        return {x.name: getattr(each, x.name) for each in values for x in dataclasses.fields(each)}
