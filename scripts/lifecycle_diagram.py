"""Write docs/lifecycle.md from the table in `holdfast.model.lifecycle`:

python scripts/lifecycle_diagram.py > docs/lifecycle.md
"""

from __future__ import annotations

import sys
from inspect import getdoc
from typing import get_args

from holdfast.model.lifecycle import NEXT, Ended, EndReason, Fact, Outcome, Requested, State, StopReason

_HEAD = """\
# The life cycle of a process

To see in which state a process is and why it ended:

```console
$ holdfast run -d --name demo -- sh -c 'exit 3'
$ holdfast inspect demo --json | jq '{status, reason, exit_code, signal, killed_by}'
{
  "status": "ended",
  "reason": "exited",
  "exit_code": 3,
  "signal": null,
  "killed_by": null
}
```

The rest of this page is generated from the table in `src/holdfast/model/lifecycle.py` by
`python scripts/lifecycle_diagram.py`; a test compares the two. A fact that is not in the table for a state cannot
happen in it: the step is refused and nothing changes.
"""

_REASONS: dict[EndReason, str] = {
    "exited": "it ended by itself; `exit_code` is the kernel's",
    "signaled": "a signal ended it without a request to holdfast; `signal` is the kernel's",
    "killed": "its end was requested, by `killed_by`; `exit_code` or `signal` are still the kernel's",
    "deadline": "it ran until its deadline and was ended; `exit_code` or `signal` are the kernel's",
    "oom": "it or a descendant was killed because memory ran out; `exit_code` or `signal` are the kernel's",
    "lost": "how it ended cannot be known; `exit_code` and `signal` are null",
    "failed_start": "it could not be started. A process that waited in a queue is kept, and `trouble` says why; "
    "any other is reported to the caller and not kept",
    "skipped": "it was not started, because a process that it waited for did not succeed",
}

_TAIL = """\
The request for the end is never overwritten: `Stopping` holds the first one, and only `advance` makes `Ended`.
The exception is a stop for a `restart`: a request for the end after it replaces it. In `Waiting` the last end
is kept; a kill makes it final, with its code and the reason `killed`.
A process that ends with code 42 after SIGTERM is shown as `killed` with `exit_code` 42 and no signal.
A process that survives a kill is still running, and shown so.
"""


def draw() -> str:
    """The whole page."""
    return "\n".join((_HEAD, *_diagram(), *_table(), *_meanings(), *_reasons(), _TAIL))


def _diagram() -> list[str]:
    arrows = [f"    [*] --> {Requested.__name__}"]
    for state, facts in NEXT.items():
        for following in dict.fromkeys(facts.values()):
            labels = ", ".join(fact.__name__ for fact, leads_to in facts.items() if leads_to is following)
            arrows.append(f"    {state.__name__} --> {following.__name__}: {labels}")
    return ["```mermaid", "stateDiagram-v2", *arrows, f"    {Ended.__name__} --> [*]", "```", ""]


def _table() -> list[str]:
    states = list(NEXT)
    names = " | ".join(state.__name__ for state in states)
    lines = [f"| fact \\ state | {names} |", "|---" * (len(states) + 1) + "|"]
    for fact in get_args(Fact):
        cells = " | ".join(_cell(state, fact) for state in states)
        lines.append(f"| {fact.__name__} | {cells} |")
    return [*lines, ""]


def _cell(state: type[State], fact: type[Fact]) -> str:
    following = NEXT[state].get(fact)
    return following.__name__ if following is not None else "—"


def _meanings() -> list[str]:
    lines: list[str] = []
    for title, union in (("States", State), ("Facts", Fact), ("Outcomes", Outcome)):
        lines += [f"## {title}", ""]
        lines += [f"- **{kind.__name__}**: {getdoc(kind)}" for kind in get_args(union)]
        lines.append("")
    return lines


def _reasons() -> list[str]:
    lines = [
        "## Reasons",
        "",
        f"The end can be requested for the reasons {_listed(get_args(StopReason))}. It is then shown as:",
        "",
    ]
    lines += [f"- `{reason}`: {_REASONS[reason]}" for reason in get_args(EndReason)]
    return [*lines, ""]


def _listed(words: tuple[str, ...]) -> str:
    quoted = [f"`{word}`" for word in words]
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"


if __name__ == "__main__":
    sys.stdout.write(draw())
