"""Programs that run a command line or a shell text: `sudo`, `timeout`, `ssh`, `docker exec` and all of programs.toml.

Options may be unknown, and programs too: a command among their arguments counts if a rule is about its program.
"""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from holdfast.safety.assignments import declare_word
from holdfast.safety.marks import HOME, UNKNOWN
from holdfast.safety.places import below, resolve
from holdfast.safety.policy import default_policy
from holdfast.safety.programs.base import Run, joined
from holdfast.safety.programs.outputs import send, which
from holdfast.safety.programs.unknown import look_at_words
from holdfast.safety.state import Feed, SimulatedCall, Word
from holdfast.safety.tables import CARRIERS, DATABASES, LANGUAGES, PATTERNS, PLAIN, SENDERS, SENTENCE, WRAPPERS, Wrapper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.safety.programs.base import Handler

_ENTER = ("Enter", "C-m", "KPEnter")
_LOGIN = ("-s", "-i", "--shell", "--login")
#: Options of ssh whose value is run on this machine.
_HELPERS = re.compile(r"(?:ProxyCommand|LocalCommand|KnownHostsCommand)[= ]\s*(.+)", re.DOTALL)
#: This machine, as a host, an address, or a context of docker.
_LOCAL = re.compile(
    r"(?:\w+://)?(?:[\w.-]+@)?(?:localhost|127\.|0\.0\.0\.0|\[?::1)|unix:|npipe:|fd:"
    r"|(?:default|desktop-linux|colima|orbstack|rootless|rancher-desktop)\b"
)
#: `host:path`, and not a path with a colon.
_REMOTE = re.compile(r"(?:scp|rsync)://|[^/:]+:")
_GIT_COMMANDS = PATTERNS["git_commands"]
_PROSE = re.compile(PATTERNS["prose_options"])
_BUCKET = re.compile(PATTERNS["bucket"])
_PRIVATE = re.compile(PATTERNS["private_files"])
_COPIES = ("cp", "copy", "sync", "rsync", "mv", "put", "mirror", "upload", "upload-file")
#: How deep guesses may be nested.
_MOST_GUESSES = 2
_COMMAND = re.compile(r"\s*\S*[A-Za-z]\S*\s+\S")


def wrapper(run: Run) -> Feed | None:
    """Look into a program of the table."""
    table = WRAPPERS[run.name]
    if table.cwd:
        state = run.state.copy()
        state.cwd = HOME if table.cwd == "~" else table.cwd
        run = replace(run, state=state)
    line, is_text = _line(run, table)
    before = len(run.arguments) - len(line)
    options = replace(run, arguments=run.arguments[:before])
    if table.skip is None:
        look_at_words(run, options.arguments)
    other_readings(run, line)
    for word in options.option_values(table.texts):
        if table.fed:
            run.script(f"{word.marked} {UNKNOWN}")
        run.script(word.marked, stdin=Feed(None, run.where, (run.name,)) if table.fed else None)
    if table.operands:
        for word in run.operands(table.values):
            if not word.text.startswith(("npm:", "pnpm:", "yarn:")):
                run.script(word.marked)
    while line and "=" in line[0].text and line[0].text.partition("=")[0].rstrip("%").isidentifier():
        declare_word(run.reader, line.pop(0), run.state.copy())
    if line and table.appends:
        line.append(Word(UNKNOWN, run.where))
    if line and (is_text or (len(line) == 1 and _COMMAND.match(line[0].text))):
        return run.script(joined(word for word in line if word.text not in _ENTER))
    if not line and table.shell and run.stdin and run.arguments and (table.skip or run.has(*_LOGIN)):
        line = [Word("sh", "sh")]
    return run.perform(line) if line else None


def other_readings(run: Run, line: Sequence[Word]) -> None:
    """Read the command line as if the table of options were wrong.

    The value of an option may be the command, and the first word of the command the value of an unknown option.
    """
    before = len(run.arguments) - len(line)
    if not line or before <= 0:
        return
    look_for_commands(run, before)
    dashes = next((place for place, word in enumerate(line[:8]) if word.text == "--"), None)
    if dashes:
        _guess(run, partial(run.perform, line[dashes + 1 :]), certain=True)
    last, values = run.arguments[before - 1].text, WRAPPERS[run.name].values
    if last.startswith("-") and "=" not in last and last not in ("-", "--") and last not in values:
        _guess(run, partial(run.perform, run.after(before + 1).command_line(values)))


def _line(run: Run, table: Wrapper) -> tuple[list[Word], bool]:
    """The command line of a wrapper, and whether it is a text for a shell."""
    for place, word in enumerate(run.arguments):
        if word.text in table.after:
            return run.after(place + 1).command_line(table.values, table.after[word.text]), table.text
        if word.text in table.same:
            return list(run.arguments[place:]), False
        if word.text in table.typed:
            return run.after(place + 1).command_line(table.values, table.typed[word.text]), True
    return ([] if table.skip is None else run.command_line(table.values, table.skip)), table.text


def package_manager(run: Run) -> Feed | None:
    """The scripts of a package.json that the same command wrote cannot be judged."""
    if run.arguments and run.held(Word("package.json")) is not None:
        run.find("@unknown-code", run.where)
    return wrapper(run)


def env(run: Run) -> Feed | None:
    """Without arguments it prints the environment: after `source .env`, with the passwords of the file."""
    if not run.arguments and "@dotenv" in run.state.values:
        run.find("@environment-shown", run.name)
    return wrapper(run) if run.name == "env" else None


def command(run: Run) -> Feed | None:
    if run.has("-v", "-V"):
        return which(run)
    rest = run.command_line()
    return run.perform(rest) if rest else None


def coproc(run: Run) -> Feed | None:
    """`coproc NAME { … }` and `coproc command`."""
    named = len(run.arguments) > 1 and run.arguments[1].text == "{"
    return run.perform(run.arguments[1:] if named else run.arguments)


def remote(run: Run) -> Feed | None:
    """A program that connects to another machine: what it runs here and there, and what it sends."""
    send(run)
    for word in run.arguments:
        if found := _HELPERS.search(word.text):
            run.script(found[1])
    if run.name == "sftp" and run.stdin and run.stdin.text:
        run.script(run.stdin.text)
    if run.name in ("ssh", "autossh"):
        place = next((at for at, word in enumerate(run.arguments) if re.match(r"-[A-Za-z]*R", word.text)), None)
        if place is not None and place < 6:
            run.find("@tunnel", *(word.text for word in run.arguments))
    before = len(run.reader.calls)
    if run.name in WRAPPERS:
        wrapper(run)
    operands = run.operands(WRAPPERS[run.name].values if run.name in WRAPPERS else ())
    if run.name in ("ssh", "autossh") and operands and not _LOCAL.match(operands[0].text):
        if len(operands) == 1 and run.stdin and run.stdin.programs == ("<",):
            script = (Word("sh"), Word("-s"))
            run.reader.report(SimulatedCall("@elsewhere", script, run.where, run.state.cwd))
        for call in run.reader.calls[before:]:
            words = (Word(call.program), *call.arguments)
            run.reader.report(SimulatedCall("@elsewhere", words, run.where, run.state.cwd))
    if run.name in ("scp", "rsync"):
        _report_upload(run, operands)
    return None


def cluster(run: Run) -> Feed | None:
    """`kubectl cp file pod:path` sends a file."""
    operands = run.operands(WRAPPERS[run.name].values)
    if operands and operands[0].text == "cp":
        _report_upload(run, operands[1:])
    return wrapper(run)


def remote_copy(run: Run) -> Feed | None:
    """`rclone copy directory remote:path` sends files."""
    operands = run.operands()
    if operands and operands[0].text in ("copy", "copyto", "moveto"):
        _report_upload(run, operands[1:])
    return None


def bucket(run: Run) -> Feed | None:
    """`aws s3 cp dump.sql s3://bucket`: what a build makes may be uploaded; data, and what is outside, is `@sent`."""
    texts = [word.text for word in run.arguments]
    verb = next((place for place, text in enumerate(texts) if text in _COPIES), None)
    places = [word for word in run.after(verb + 1).operands() if word.text] if verb is not None else []
    sources = [word for word in places if not _BUCKET.fullmatch(word.text)]
    target = next((word for word in places if _BUCKET.fullmatch(word.text)), None)
    if target and sources and places.index(sources[0]) < places.index(target):
        path = resolve(sources[0].marked, run.state.cwd)
        outside = below(path, run.state.cwd) is None and not path.startswith(("/tmp/", UNKNOWN))
        local = any(_LOCAL.match(text.partition("=")[2] or text) for text in texts)
        private = outside or _PRIVATE.fullmatch(sources[0].text)
        if private and not local and not run.has("--dryrun", "--dry-run", "-n"):
            run.find("@sent", target.marked)
    if run.name in WRAPPERS:
        return wrapper(run)
    look_for_commands(run)
    return None


def _report_upload(run: Run, operands: Sequence[Word]) -> None:
    """Report files that are copied to another machine: the last operand is `host:path`."""
    target = operands[-1].marked if len(operands) > 1 else ""
    nothing = "--dry-run" if run.name in ("kubectl", "oc", "k") else r"-[A-Za-z]*n[A-Za-z]*|--dry-run"
    dry = any(re.fullmatch(nothing, word.text) for word in run.arguments)
    if not dry and _REMOTE.match(target) and not _LOCAL.match(target):
        run.find("@sent", target)


def container(run: Run) -> Feed | None:
    """`docker run` and `docker exec`: the command, and the directories that the container gets."""
    _report_elsewhere(run)
    texts = [word.text for word in run.arguments]
    verb = next((place for place, text in enumerate(texts[:4]) if text in ("run", "exec")), None)
    if verb is None:
        return wrapper(run)
    inner = run.after(verb + 1)
    line = inner.command_line(WRAPPERS[run.name].values)
    for place, word in enumerate(inner.arguments[: len(inner.arguments) - len(line)] if texts[verb] == "run" else ()):
        source = _mounted(word.marked, inner.arguments[place - 1].text if place else "")
        if source:
            run.reader.report(SimulatedCall("@mount", (Word(source, word.source),), run.where, run.state.cwd))
    entry = inner.option("--entrypoint")
    state = run.state.copy()
    state.cwd = WRAPPERS[run.name].cwd
    replace(run, state=state).perform([*([entry] if entry else []), *line[1:]])
    return None


def _report_elsewhere(run: Run) -> None:
    """Report a call for a container engine on another machine."""
    hosts = [*run.state.values.get("DOCKER_HOST", ()), *run.state.values.get("DOCKER_CONTEXT", ())]
    line = run.command_line(("-H", "--host", "-c", "--context", "-l", "--log-level", "--config"))
    before = replace(run, arguments=run.arguments[: len(run.arguments) - len(line)])
    hosts += [word.text for word in before.option_values(("-H", "--host", "-c", "--context"))]
    if line and any(host and not _LOCAL.match(host) for host in hosts):
        run.reader.report(SimulatedCall("@elsewhere", (Word(run.name), *line), run.where, run.state.cwd))


def _mounted(text: str, previous: str) -> str:
    if previous in ("-v", "--volume"):
        return text.partition(":")[0]
    if text.startswith(("--volume=", "-v=")):
        return text.partition("=")[2].partition(":")[0]
    if previous == "--mount" or text.startswith("--mount="):
        fields = dict(part.partition("=")[::2] for part in text.removeprefix("--mount=").split(","))
        return fields.get("source") or fields.get("src") or ""
    return ""


def git(run: Run) -> Feed | None:
    for place, word in enumerate(run.arguments[:-1]):
        setting = run.arguments[place + 1].text
        if word.text == "-c" and (found := re.match(rf"(?:{_GIT_COMMANDS})=!?(.*)", setting, re.DOTALL)):
            run.script(found[1])
        if re.fullmatch(_GIT_COMMANDS, word.text) and (setting.startswith("!") or not word.text.startswith("alias.")):
            run.reader.read_quietly(setting.removeprefix("!"), run.state.copy())
    for word in run.arguments:
        if found := re.match(r"ext::(.*)|-O(\S.*)", word.text, re.DOTALL):
            run.script(found[1] or found[2])
    wrapper(run)
    if [word.text for word in run.operands(["-C", "-c"])] == ["ls-files"]:
        return replace(run.unknown(), paths=(run.state.cwd,))
    return None


@functools.cache
def _programs() -> frozenset[str]:
    """Programs with rules, and findings; not those that any text has which is no command."""
    named = (default_policy().programs | CARRIERS).union(WRAPPERS, LANGUAGES, DATABASES)
    return named - SENTENCE - {"@unparsed", "@unknown-program", "@unknown-code"}


def look_for_commands(run: Run, count: int = 64) -> None:
    """Report commands among the first arguments of a program that may run them: those of programs with rules."""
    if run.name in PLAIN or run.name.startswith("@") or (run.arguments and run.arguments[0].text == "="):
        return
    programs = _programs()
    for place, word in enumerate(run.arguments[:count]):
        previous = run.arguments[place - 1].text if place else ""
        if _PROSE.fullmatch(previous) and run.name not in WRAPPERS:
            continue
        name, equals, value = word.marked.partition("=")
        text = word.marked
        if text.startswith("-"):
            text = value if equals and not _PROSE.fullmatch(name) else ""
        if text and _COMMAND.match(text):
            _guess(run, partial(run.script, text, (), Feed("")))
        elif word.text.rpartition("/")[2] in programs and (place + 1 < len(run.arguments) or previous == "--"):
            _guess(run, partial(run.perform, run.arguments[place:], Feed("")), certain=previous == "--")


def _guess(run: Run, read: Callable[[], object], *, certain: bool = False) -> None:
    """Read what may be a command; only programs with rules count, and if it is certain, risky words."""
    reader = run.reader
    if reader.guesses >= _MOST_GUESSES:
        return
    before = len(reader.calls)
    reader.guesses += 1
    try:
        read()
    finally:
        reader.guesses -= 1
    found = reader.calls[before:]
    reader.calls[before:] = [
        call
        for call in found
        if call.program[:5] == "mkfs." or (call.program in _programs() and (certain or call.program != "@risky"))
    ]


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(WRAPPERS, wrapper),
    **dict.fromkeys((*SENDERS, "mosh", "autossh"), remote),
    **{name: container for name, table in WRAPPERS.items() if table.cwd == "/@container" and "run" in table.after},
    **dict.fromkeys(("npm", "pnpm", "yarn"), package_manager),
    **dict.fromkeys(("env", "printenv"), env),
    "command": command,
    "coproc": coproc,
    **dict.fromkeys(("kubectl", "oc", "k"), cluster),
    "rclone": remote_copy,
    **dict.fromkeys(("aws", "gsutil", "gcloud", "s5cmd", "s3cmd", "s4cmd", "mc", "b2", "ossutil", "coscmd"), bucket),
    "git": git,
}
