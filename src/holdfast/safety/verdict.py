"""What is said about a command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Action = Literal["allow", "ask", "deny"]
Level = Literal["operator", "user", "default"]
_RANK: dict[Action, int] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a command may run: at once, after a person said yes, or not at all."""

    action: Action
    rule: str | None = None
    """The name of the rule that decided; None where nothing spoke against it."""
    why: str = ""
    """One sentence for people and models."""
    where: str = ""
    """The part of the text that it is about."""
    level: Level = "default"
    """Whose rule it is: operator, user or default."""


ALLOWED = Verdict("allow")


def worse(one: Verdict, other: Verdict) -> Verdict:
    """The stricter of two; the first of two equals."""
    return other if _RANK[other.action] > _RANK[one.action] else one
