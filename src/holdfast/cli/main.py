"""`holdfast VERB …`: finds the verb, runs it, and always returns an exit code."""

from __future__ import annotations

import os
import sys

from holdfast.cli import console
from holdfast.cli.options import load, parse, resolved
from holdfast.cli.verbs import ALIASES, VERBS
from holdfast.errors import BadValue, HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_INTERRUPTED = 130
_BROKEN_PIPE = 141
_BAD_DESCRIPTOR = 9


def main(arguments: Sequence[str] | None = None) -> int:
    typed = list(sys.argv[1:] if arguments is None else arguments)
    words = resolved(typed)
    _open_streams()
    # A name may hold any character: one that the terminal cannot encode is shown as an escape.
    for stream in (sys.stdout, sys.stderr):
        if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
            reconfigure(errors="backslashreplace")
    try:
        code = _run(words)
        sys.stdout.flush()
    except HoldfastError as error:
        code = _report(error, words, typed[:1])
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except BrokenPipeError:
        code = _BROKEN_PIPE
    except OSError as error:
        code = _report(_explained(error), words, typed[:1])
    code = _settled(code)
    if arguments is None:
        os._exit(code)  # everything is written and the system closes the rest; the interpreter's own end takes longer
    return code


def _open_streams() -> None:
    """Keep the numbers of closed standard streams occupied, so that no other file gets them. Writing still fails."""
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
        from holdfast.cli.help import bare

        return bare.run()
    verb, *rest = words
    if verb in ("-h", "--help", "help"):
        return _help(rest)
    if verb == "--complete":
        from holdfast.cli.help import completing

        return completing.run(rest)
    if verb in ("-V", "--version"):
        verb = "version"
    if verb not in VERBS:
        from holdfast.cli.help import similar

        raise BadValue(f"no verb {verb[:80]!r}{similar.verb(verb)}", next="holdfast --help")
    module = __import__(f"holdfast.cli.verbs.{verb}", fromlist=["VERB"])
    given = parse(module.VERB, rest)
    if given.help:
        return _help([verb])
    code: int = module.run(given)
    if os.isatty(2) and "--json" not in words:
        from holdfast.cli import closed_terminals

        closed_terminals.report(words)
    return code


def _help(words: list[str]) -> int:
    from holdfast.cli.help import usage

    words = resolved(words)
    if words and words[0] in VERBS:
        sys.stdout.write(usage.verb_page(load(words[0])))
    else:
        sys.stdout.write(usage.overview())
    return 0


def _report(error: HoldfastError, words: list[str], typed: list[str]) -> int:
    if isinstance(error, BadValue) and error.next == BadValue.next:
        error.next = f"holdfast {words[0]} --help" if words and words[0] in VERBS else "holdfast --help"
    if typed and typed[0] in ALIASES:
        _name_alias(error, words[0], typed[0])
    if error.code == "not_found" and "all" in words:
        from holdfast.cli.help import similar

        error.next = similar.all_of(words[0], typed[0]) or error.next
    before_command = words[: words.index("--")] if "--" in words else words
    if "--json" in before_command:
        try:
            console.out_json({"error": error.to_wire()})
            sys.stdout.flush()
        except OSError:
            pass
    console.say_error(error)
    return error.exit_status


def _name_alias(error: HoldfastError, verb: str, alias: str) -> None:
    """Name the word that was typed, where the error begins with its verb."""
    for end in (":", " has no option"):
        if error.message.startswith(f"{verb}{end}"):
            error.message = f"{alias}{error.message.removeprefix(verb)}"
    if error.next == f"holdfast {verb} --help":
        error.next = f"holdfast {alias} --help"


def _explained(error: OSError) -> HoldfastError:
    """An error of the system, with its path."""
    if error.errno == _BAD_DESCRIPTOR and error.filename is None:
        return HoldfastError("stdout is closed, so the output is lost", next="redirect it: > FILE")
    where = "".join(f"{_path(name)}: " for name in (error.filename, error.filename2) if name is not None)
    return HoldfastError(f"{where}{error.strerror or error}", next="holdfast doctor")


def _path(name: object) -> str:
    return os.fsdecode(name) if isinstance(name, (str, bytes)) else f"descriptor {name}"


def _settled(code: int) -> int:
    """Flush the buffers, so that the interpreter does not fail to do so at its end."""
    for stream, fd in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), fd)
    return code
