"""What a sink is: a way to the outside, and which notices take it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from holdfast.model.notices import Kind

Way = Literal["apprise", "webhook", "desktop"]
Outcomes = Literal["any", "failure", "success"]

KINDS: tuple[Kind, ...] = get_args(Kind)
OUTCOMES: tuple[Outcomes, ...] = get_args(Outcomes)
#: What people are told unless they say otherwise: everything but what comes again and again by the clock.
USUAL_KINDS: frozenset[Kind] = frozenset(KINDS) - {"progress"}


class Quiet(NamedTuple):
    """Hours of the local day in which nothing is sent: minutes since midnight; `end` is the first that is not quiet."""

    start: int
    end: int

    def holds(self, minute: int) -> bool:
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end

    def __str__(self) -> str:
        return f"{self.start // 60:02}:{self.start % 60:02}-{self.end // 60:02}:{self.end % 60:02}"


class Secret(NamedTuple):
    """A text that nobody may see: as it stands in the configuration, or where to find it when it is needed."""

    text: str | None = None
    env: str | None = None
    file: str | None = None

    def __repr__(self) -> str:
        return "Secret(…)"


@dataclass(frozen=True, slots=True)
class Sink:
    name: str
    way: Way
    address: Secret = field(default=Secret(), repr=False)
    """An Apprise URL or the address of a webhook; nothing for the desktop."""
    secret: Secret = field(default=Secret(), repr=False)
    """What a webhook is signed with."""
    kinds: frozenset[Kind] = USUAL_KINDS
    sessions: tuple[str, ...] = ("*",)
    """Patterns as in a shell."""
    outcomes: Outcomes = "any"
    """Which completions."""
    quiet: Quiet | None = None
    tries: int = 20
    enabled: bool = True
