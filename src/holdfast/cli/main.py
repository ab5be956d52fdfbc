"""`holdfast VERB …`: finds the verb, does it, and answers with an exit code whatever happens."""

from __future__ import annotations

import os
import sys

from holdfast.cli import console
from holdfast.cli.options import parse
from holdfast.errors import BadValue, HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Every verb has a module of its name in `verbs`.
VERBS = {
    "run": "Start a command, in the foreground or with -d in the background",
    "ps": "List processes",
    "inspect": "Show all that is known about a process",
    "top": "Show what processes use, live",
    "logs": "Show the output of a process",
    "wait": "Wait until processes end, or write something",
    "kill": "End processes with all that they started, or send a signal",
    "send": "Write to the input of a process",
    "screen": "Show what is on the terminal of a process",
    "attach": "Connect this terminal to a process",
    "resize": "Change the size of a process's terminal",
    "restart": "Run processes again, with the same command and id",
    "inbox": "Show what a session is yet to be told, or wait for it",
    "ack": "Acknowledge notifications, which are then never told again",
    "digest": "Show what still runs for a session, in a few lines",
    "interrupt": "End what an agent of a session is waiting for, and leave its background processes",
    "events": "Show what happened, and follow what happens",
    "publish": "Put an event on the bus",
    "rm": "Forget ended processes and their output",
    "up": "Start the processes of a project from its file, each when what it needs is there",
    "down": "End the processes of a project",
    "notify": "Try and look after the ways in which people are told: chats, mail, webhooks, desktop",
    "sessions": "List sessions",
    "session": "End a session, or give it another name",
    "transfer": "Hand a process to another session",
    "approvals": "Show what waits for a person's approval, and ask",
    "approve": "Let a command be done that waits for approval",
    "deny": "Say no to a command, or take an approval back",
    "audit": "Show who decided what, and whether that record is whole",
    "mcp": "Serve an MCP client on stdin and stdout",
    "daemon": "Start, stop and look after the daemon by hand",
    "completion": "Print the script that completes holdfast's words in your shell",
    "integrate": "Join another program with holdfast: Claude Code, Codex",
    "acp": "Run an agent for an editor, and hold its terminals",
    "hook": "What other programs' hooks call: brings news into their conversations",
    "service": "Run the daemon from login on, by systemd",
    "doctor": "Tell what this machine offers, and what works less well for want of it",
    "bench": "Measure this installation, alone or beside others",
    "version": "Show the version",
}

_INTERRUPTED = 130
_BROKEN_PIPE = 141
_BAD_DESCRIPTOR = 9


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    _open_streams()
    # A name may hold anything: what the terminal's encoding cannot say is shown as an escape.
    for stream in (sys.stdout, sys.stderr):
        if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
            reconfigure(errors="backslashreplace")
    try:
        code = _run(words)
        sys.stdout.flush()
    except HoldfastError as error:
        code = _report(error, words)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except BrokenPipeError:
        code = _BROKEN_PIPE
    except OSError as error:
        code = _report(_explained(error), words)
    code = _settled(code)
    if arguments is None:
        os._exit(code)  # everything is written and the system closes the rest; the interpreter's own end takes longer
    return code


def _open_streams() -> None:
    """Where a standard stream was closed, nothing else may take its number: to write there fails as before."""
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        for fd in (0, 1, 2):
            try:
                os.fstat(fd)
            except OSError:
                os.open(os.devnull, os.O_RDONLY)
        sys.stdout = sys.stdout or open(1, "w", closefd=False)
        sys.stderr = sys.stderr or open(2, "w", closefd=False)


def _run(words: list[str]) -> int:
    if not words:
        raise BadValue("what shall it do? The verb is missing", next="holdfast --help")
    verb, *rest = words
    if verb in ("-h", "--help", "help"):
        return _help(rest)
    if verb == "--complete":
        from holdfast.cli import completing

        return completing.run(rest, VERBS)
    if verb in ("-V", "--version"):
        verb = "version"
    if verb not in VERBS:
        raise BadValue(f"no verb {verb[:80]!r}{_similar(verb)}", next="holdfast --help")
    module = __import__(f"holdfast.cli.verbs.{verb}", fromlist=["VERB"])
    given = parse(module.VERB, rest)
    if given.help:
        return _help([verb])
    code: int = module.run(given)
    return code


def _help(words: list[str]) -> int:
    from holdfast.cli import help

    if words and words[0] in VERBS:
        module = __import__(f"holdfast.cli.verbs.{words[0]}", fromlist=["VERB"])
        sys.stdout.write(help.verb_page(module.VERB))
    else:
        sys.stdout.write(help.overview(VERBS))
    return 0


def _similar(verb: str) -> str:
    import difflib

    close = difflib.get_close_matches(verb, VERBS, 1)
    return f" (did you mean {close[0]}?)" if close else ""


def _report(error: HoldfastError, words: list[str]) -> int:
    if words and words[0] in VERBS:
        error.next = error.next.replace("VERB", words[0])
    before_command = words[: words.index("--")] if "--" in words else words
    if "--json" in before_command:
        try:
            console.out_json({"error": error.to_wire()})
            sys.stdout.flush()
        except OSError:
            pass
    console.say_error(error)
    return error.exit_status


def _explained(error: OSError) -> HoldfastError:
    """What the system said, with the path that it spoke of."""
    if error.errno == _BAD_DESCRIPTOR and error.filename is None:
        return HoldfastError("stdout is closed; what was to be shown is lost", next="give it a place: > FILE")
    where = "".join(f"{_path(name)}: " for name in (error.filename, error.filename2) if name is not None)
    return HoldfastError(f"{where}{error.strerror or error}", next="holdfast doctor")


def _path(name: object) -> str:
    return os.fsdecode(name) if isinstance(name, (str, bytes)) else f"descriptor {name}"


def _settled(code: int) -> int:
    """Leave nothing in the buffers that the interpreter would fail to write when it ends."""
    for stream, fd in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), fd)
    return code
