"""What the user may have meant by an unknown verb or option."""

from __future__ import annotations

from holdfast.cli.verbs import ALIASES, VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Words that other tools use, and what does the same here.
_MEANINGS = {
    "ps": "jobs processes procs",
    "run": "spawn launch create new bg background",
    "run --queue NAME": "add enqueue submit",
    "queue": "queues",
    "queue NAME --limit N": "parallel group groups",
    "inspect": "show describe info details get",
    "logs": "log tail output cat stdout",
    "logs -f": "follow",
    "kill": "end terminate term cancel abort halt signal quit",
    "kill -s STOP": "suspend freeze",
    "kill -s STOP ID, or of a queue: queue NAME --pause": "pause",
    "kill -s CONT": "unpause continue thaw",
    "kill -s CONT ID, or of a queue: queue NAME --resume": "resume",
    "rm": "remove delete del erase forget",
    "prune": "clean cleanup clear gc purge flush",
    "restart": "rerun reload retry again",
    "top": "monitor monit htop usage",
    "send": "write input type stdin",
    "attach": "connect fg foreground console",
    "exec": "enter shell sh ssh",
    "inbox": "notifications notices messages mail",
    "daemon stop": "shutdown exit",
    "approvals": "requests pending",
}
_LONGEST = 80


def verb(word: str) -> str:
    """` (did you mean …?)`, by meaning, else by spelling; empty if nothing is near."""
    for meant, words in _MEANINGS.items():
        if word.lower() in words.split():
            return f" (did you mean {meant}?)"
    return _nearest(word, [*VERBS, *ALIASES])


def option(word: str, known: Sequence[str]) -> str:
    """The same for an option; a long option may have been written with one dash."""
    return _nearest(f"--{word.lstrip('-')}", known)


def _nearest(word: str, known: Sequence[str]) -> str:
    import difflib

    close = difflib.get_close_matches(word[:_LONGEST].lower(), known, 1, 0.65)
    return f" (did you mean {close[0]}?)" if close else ""
