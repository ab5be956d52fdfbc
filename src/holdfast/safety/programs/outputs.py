"""Programs whose output or files can be known: `echo`, `cat`, `tee`, `curl -o`, `mv`; and `rm`, which empties.

What a program makes by decoding or transforming is not worked out: it is unknown, and a shell that reads it asks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.safety.expansion import unescaped
from holdfast.safety.marks import HOME, UNKNOWN, letters
from holdfast.safety.places import children_of, resolve
from holdfast.safety.programs.base import Run
from holdfast.safety.rules import paths_in
from holdfast.safety.state import NOTHING, Feed, SimulatedCall, Word

if TYPE_CHECKING:
    from holdfast.safety.programs.base import Handler

#: Longer output counts as unknown.
MOST_OUTPUT = 64 * 1024
_FORMAT = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?([sdbqiuxXcof%])")
#: A substitution that prints the environment.
_ENVIRONMENT = re.compile(r"(?:\$\(|`)\s*(?:env|printenv|set|export -p|declare -x)\s*(?:[|)`]|$)")
_PRINT_ENVIRONMENT = {"env", "printenv", "set", "export", "declare", "history"}
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")


def _known(run: Run, text: str) -> Feed | None:
    """Known output. HOME stays marked, because it is part of a path."""
    return Feed(text, run.where, (run.name,)) if UNKNOWN not in text and len(text) <= MOST_OUTPUT else None


def _stored(word: Word) -> str:
    return HOME.join(letters(part) for part in word.marked.split(HOME))


def echo(run: Run) -> Feed | None:
    words = [_stored(word) for word in run.arguments]
    flags = ""
    while words and re.fullmatch(r"-[neE]+", words[0]):
        flags += words.pop(0)
    text = " ".join(words)
    return _known(run, (unescaped(text) if "e" in flags else text) + ("" if "n" in flags else "\n"))


def printf(run: Run) -> Feed | None:
    words = [_stored(word) for word in run.arguments]
    variable = words[1] if words[:1] == ["-v"] and len(words) > 1 else None
    words = words[2:] if variable else words
    words = words[1:] if words[:1] == ["--"] else words
    if not words:
        return None
    rest = [unescaped(word) if "%b" in words[0] else word for word in words[1:]]
    text, form = "", unescaped(words[0])
    for _ in range(256):
        text += _FORMAT.sub(lambda sign: "%" if sign[1] == "%" else (rest.pop(0) if rest else ""), form)
        if not rest or not _FORMAT.search(form.replace("%%", "")):
            break
    if variable:
        run.state.set(letters(variable), (text,))
        return NOTHING
    return _known(run, text)


def cat(run: Run) -> Feed | None:
    operands = run.operands()
    if not operands:
        return run.stdin
    feed = NOTHING
    for word in operands:
        held = run.held(word)
        feed = feed.joined(held if held is not None else Feed(None, run.where, (run.name,)))
    return feed


def tee(run: Run) -> Feed | None:
    feed = run.stdin or run.unknown()
    _write(run, run.operands(), feed)
    return feed


def mkfifo(run: Run) -> Feed | None:
    _write(run, run.operands(["-m", "--mode"]), Feed(None, run.where, (run.name,)))
    return NOTHING


def _write(run: Run, words: list[Word], feed: Feed) -> None:
    for word in words:
        if word.known:
            run.state.files[resolve(word.marked, run.state.cwd)] = feed


def which(run: Run) -> Feed | None:
    operands = run.operands()
    return _known(run, _stored(operands[0]) + "\n") if len(operands) == 1 else None


def mktemp(run: Run) -> Feed | None:
    return Feed("/tmp/tmp.made\n", run.where, (run.name,))


def pwd(run: Run) -> Feed | None:
    return Feed(run.state.cwd + "\n", run.where, (run.name,))


def realpath(run: Run) -> Feed | None:
    operands = run.operands()
    if len(operands) != 1 or not operands[0].known:
        return None
    return Feed(resolve(operands[0].marked, run.state.cwd) + "\n", run.where, (run.name,))


def fetch(run: Run) -> Feed | None:
    """Files that `curl` and `wget` write hold what came from the network."""
    send(run)
    targets = [word for word in (_target(run), *_named_by_address(run)) if word and word.known and word.text != "-"]
    _write(run, targets, Feed(None, run.where, (run.name,)))
    return NOTHING if targets else None


def _target(run: Run) -> Word | None:
    letter = "O" if run.name == "wget" else "o"
    for place, word in enumerate(run.arguments):
        if found := re.fullmatch(rf"-[A-Za-z]*?{letter}([^A-Za-z].*)?", word.text):
            return Word(found[1], word.source) if found[1] else next(iter(run.arguments[place + 1 :]), None)
    return run.option("--output", "--output-document", "--out")


def _named_by_address(run: Run) -> list[Word]:
    """Files that are named like the last part of their URL."""
    options = (re.fullmatch(r"-[A-Za-z]*O[A-Za-z]*|--remote-name", word.text) for word in run.arguments)
    if _target(run) if run.name == "wget" else not any(options):
        return []
    return [
        Word(word.text.rpartition("/")[2].partition("?")[0], word.source)
        for word in run.operands()
        if "/" in word.text and not word.text.endswith("/")
    ]


def send(run: Run) -> Feed | None:
    """Report an environment that leaves the machine."""
    paths = (path for word in run.arguments for path in paths_in(word.marked))
    held = [run.stdin, *(run.state.files.get(resolve(path, run.state.cwd)) for path in paths)]
    upstream = any(_PRINT_ENVIRONMENT.intersection(feed.programs) for feed in held if feed)
    if upstream or any(UNKNOWN in word.marked and _ENVIRONMENT.search(word.source) for word in run.arguments):
        run.find("@environment-sent", run.name)
    return None


def connect(run: Run) -> Feed | None:
    """`nc -e sh` and `socat … EXEC:sh` give a shell to the network."""
    send(run)
    hosts = [word.text for word in run.operands(["-p", "-w", "-s", "-X", "-x"]) if re.search(r"[A-Za-z.]", word.text)]
    local = ("localhost", "127.", "0.0.0.0", "::1")
    if run.stdin and hosts and not run.has("-z", "-l", "-zv", "-vz") and not hosts[0].startswith(local):
        run.find("@sent", hosts[0])
    for line in (run.stdin.text or "").splitlines()[:64] if run.stdin else ():
        # A store may listen there: `echo flush_all | nc localhost 11211`.
        run.find("@sql", line)
    if any(re.match(r"(?i)(exec|system):|(-[a-z]*[ec]|--exec|--sh-exec|--lua-exec)$", w.text) for w in run.arguments):
        run.find("@shell-to-net", run.name)
    return None


def rename(run: Run) -> Feed | None:
    """A delete under the new name is a delete of the old one: `mv src /tmp/x; rm -rf /tmp/x`, and links."""
    operands = run.operands(["-t", "-S"])
    if len(operands) == 2 and all(word.known for word in operands):
        old, new = (resolve(word.marked, run.state.cwd) for word in operands)
        run.state.renamed[new] = run.state.renamed[f"{new}/{old.rpartition('/')[2]}"] = old
    return NOTHING


def remove(run: Run) -> Feed | None:
    """`rm x/*` leaves x empty."""
    for word in run.operands():
        path = resolve(word.marked, run.state.cwd)
        if old := run.state.renamed.get(path):
            options = [other for other in run.arguments if other.text.startswith("-")]
            run.reader.report(SimulatedCall(run.name, (*options, Word(old, word.source)), run.where, run.state.cwd))
        if (parent := children_of(path)) != path:
            run.reader.report(SimulatedCall("@empties", (Word(parent, word.source),), run.where, run.state.cwd))
    return NOTHING


def make(run: Run) -> Feed | None:
    """Recipes that the same command gives or writes cannot be judged; a Makefile on disk is not looked at."""
    for word in run.arguments:
        if word.text.startswith("SHELL="):
            run.script(word.marked.removeprefix("SHELL="))
    named = run.option("-f", "--file", "--makefile")
    held = [run.held(word) for word in ([named] if named else [Word(name) for name in _MAKEFILES])]
    given = any(word.text.startswith("--eval") for word in run.arguments)
    if given or any(feed and feed.programs != ("<",) for feed in held):
        run.find("@unknown-code", run.where)
    return None


HANDLERS: dict[str, Handler] = {
    "echo": echo,
    "printf": printf,
    "cat": cat,
    "tee": tee,
    "mkfifo": mkfifo,
    "which": which,
    "mktemp": mktemp,
    "pwd": pwd,
    "realpath": realpath,
    **dict.fromkeys(("true", ":"), lambda run: NOTHING),
    **dict.fromkeys(("rm", "unlink", "shred"), remove),
    **dict.fromkeys(("mv", "ln"), rename),
    **dict.fromkeys(("curl", "wget", "aria2c"), fetch),
    **dict.fromkeys(("nc", "ncat", "netcat", "socat"), connect),
    **dict.fromkeys(("make", "gmake"), make),
}
