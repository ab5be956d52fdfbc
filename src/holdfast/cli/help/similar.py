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
    "docs installing": "upgrade update install uninstall",
    "service install": "enable startup autostart",
    "service remove": "disable unstartup",
    "cp": "copy scp",
    "": "reset",  # nothing here does this, and what is spelled so does something else
}
#: The same for options, after the verbs that have them; `-0` is any number.
_OPTION_MEANINGS = {
    ("--grace", "kill restart down"): "-t --time --timeout",
    ("--deadline", "run"): "--timeout --time-limit",
    ("--json", "ps inspect top"): "--format -f --output -o",
    ("--once", "top"): "--no-stream",
    ("-n N", "logs"): "-0",
}
#: Options that are not needed, or that nothing here does.
_OPTION_REMARKS = {
    "run --rm": "not needed: ended processes are deleted by themselves, see holdfast config get keep_ended",
    "rm -f": "end it first: holdfast kill -9 ID",
    "rm --force": "end it first: holdfast kill -9 ID",
    "config -0": "no setting is negative",
}
_LONGEST = 80


def verb(word: str) -> str:
    """` (did you mean …?)`, by meaning, else by spelling; empty if nothing is near."""
    for meant, words in _MEANINGS.items():
        if word.lower() in words.split():
            return f" (did you mean {meant}?)" if meant else ""
    return nearest(word, [*VERBS, *ALIASES])


def option(verb: str, word: str, known: Sequence[str]) -> str:
    """The same for an option of a verb; a long option may have been written with one dash."""
    typed = "-0" if word[1:2].isdigit() else word
    if remark := _OPTION_REMARKS.get(f"{verb} {typed}"):
        return f" ({remark})"
    for (meant, verbs), words in _OPTION_MEANINGS.items():
        if verb in verbs.split() and typed in words.split():
            return f" (did you mean {meant}?)"
    return nearest(f"--{word.lstrip('-')}", known)


def all_of(verb: str, typed: str) -> str:
    """What the word `all` in place of an ID may mean; empty if nothing."""
    if verb in ("kill", "rm", "logs"):
        return f"holdfast {typed} --all, if all are meant"
    return "holdfast restart $(holdfast ps -q), if all are meant" if verb == "restart" else ""


def nearest(word: str, known: Sequence[str]) -> str:
    """By spelling alone."""
    import difflib

    close = difflib.get_close_matches(word[:_LONGEST].lower(), known, 1, 0.65)
    return f" (did you mean {close[0]}?)" if close else ""
