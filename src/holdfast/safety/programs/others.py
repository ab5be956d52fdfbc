"""Programs with a side door: git, fetchers that write files, and those that connect a shell to the net."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.safety.marks import UNKNOWN
from holdfast.safety.places import children_of, resolve
from holdfast.safety.programs.base import Run, joined, names
from holdfast.safety.rules import paths_in
from holdfast.safety.state import NOTHING, Call, Feed, Word

if TYPE_CHECKING:
    from holdfast.safety.programs.base import Handler

_GIT_VALUES = ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"]
#: Settings whose value git runs.
_GIT_COMMANDS = (
    r"alias\.[^=]*|(?i:core\.(?:editor|pager|sshcommand|fsmonitor|askpass|gitproxy)|pager\.\w+|sequence\.editor|diff\.external"
    r"|gpg(?:\.\w+)?\.program|(?:filter|diff|merge|difftool|mergetool|credential|remote|browser|man|trailer)\.(?:[^=]*\.)?"
    r"(?:clean|smudge|process|textconv|driver|cmd|command|helper|uploadpack|receivepack))"
)
#: What prints all of the environment.
_ENVIRONMENT = re.compile(r"(?:\$\(|`)\s*(?:env|printenv|set|export -p|declare -x)\s*(?:[|)`]|$)")
SENDERS = frozenset(names("curl wget nc ncat netcat socat ssh scp telnet http https xh mail sendmail ftp sftp rsync"))


def git(run: Run) -> Feed | None:
    for place, word in enumerate(run.arguments[:-1]):
        setting = run.arguments[place + 1].text
        if found := re.match(r"--(?:upload-pack|receive-pack|exec)=(.*)", setting, re.DOTALL):
            run.script(found[1])
        if word.text == "-c" and (found := re.match(rf"(?:{_GIT_COMMANDS})=!?(.*)", setting, re.DOTALL)):
            run.script(found[1])
        if re.fullmatch(_GIT_COMMANDS, word.text) and (setting.startswith("!") or not word.text.startswith("alias.")):
            run.reader.read_quietly(setting.removeprefix("!"), run.state.copy())
        if word.text in ("--exec", "-x", "--tree-filter", "--index-filter", "--msg-filter", "--upload-pack"):
            run.script(setting)
    texts = [word.text for word in run.arguments]
    for text in texts:
        if found := re.match(r"ext::(.*)|(?:-O|--open-files-in-pager=)(\S.*)", text, re.DOTALL):
            run.script(found[1] or found[2])
    words = [word.text for word in run.operands(_GIT_VALUES)]
    if words == ["ls-files"]:
        feed = run.unknown()
        return Feed(None, feed.source, feed.programs, (run.state.cwd,))
    if words[:2] == ["bisect", "run"]:
        run.perform(run.arguments[texts.index("run") + 1 :])
    elif words[:2] == ["submodule", "foreach"]:
        run.script(joined(word for word in run.arguments[texts.index("foreach") + 1 :] if word.text != "--recursive"))
    return None


def fetch(run: Run) -> Feed | None:
    """A fetcher knows which files it writes: what is in them comes from the net."""
    feed = Feed(None, run.where, (run.name,))
    targets = [word for word in (_target(run), *_by_name(run)) if word and word.known and word.text != "-"]
    for word in targets:
        run.state.files[resolve(word.marked, run.state.cwd)] = feed
    send(run)
    return NOTHING if targets else None


def _target(run: Run) -> Word | None:
    letter = "O" if run.name == "wget" else "o"
    for place, word in enumerate(run.arguments):
        if found := re.fullmatch(rf"-[A-Za-z]*?{letter}([^A-Za-z].*)?", word.text):
            return Word(found[1], word.source) if found[1] else next(iter(run.arguments[place + 1 :]), None)
    return run.option("--output", "--output-document", "--out")


def _by_name(run: Run) -> list[Word]:
    """Files that are named like the last part of their address."""
    remote = run.name == "wget" or any(
        re.fullmatch(r"-[A-Za-z]*O[A-Za-z]*|--remote-name", w.text) for w in run.arguments
    )
    if not remote or (run.name == "wget" and _target(run)):
        return []
    return [
        Word(word.text.rpartition("/")[2].partition("?")[0], word.source)
        for word in run.operands()
        if "/" in word.text and not word.text.endswith("/")
    ]


def send(run: Run) -> Feed | None:
    """The environment must not leave the machine."""
    before = run.stdin.programs if run.stdin else ()
    held = [
        run.state.files.get(resolve(path, run.state.cwd)) for word in run.arguments for path in paths_in(word.marked)
    ]
    before += tuple(program for feed in held if feed for program in feed.programs)
    upstream = {"env", "printenv", "set", "export", "declare", "history"}.intersection(before)
    inside = any(UNKNOWN in word.marked and _ENVIRONMENT.search(word.source) for word in run.arguments)
    if upstream or inside:
        run.find("@environment-sent", run.name)
    return None


def connect(run: Run) -> Feed | None:
    """`nc -e sh` and `socat … EXEC:sh` hand out a shell."""
    send(run)
    texts = [word.text for word in run.arguments]
    handed = any(re.match(r"(?i)(exec|system):", text) for text in texts) or any(
        re.fullmatch(r"-[a-z]*[ec]|--exec|--sh-exec|--lua-exec", text) for text in texts
    )
    if handed:
        run.find("@shell-to-net", run.name)
    return None


def rename(run: Run) -> Feed | None:
    """What is deleted under its new name is gone under the old one: `mv src /tmp/x; rm -rf /tmp/x`, and links."""
    operands = run.operands(["-t", "-S"])
    if len(operands) == 2 and all(word.known for word in operands):
        old, new = (resolve(word.marked, run.state.cwd) for word in operands)
        run.state.renamed[new] = old
        run.state.renamed[f"{new}/{old.rpartition('/')[2]}"] = old
    return NOTHING


def remove(run: Run) -> Feed | None:
    """`rm x/*` leaves x empty."""
    for word in run.operands():
        path = resolve(word.marked, run.state.cwd)
        if old := run.state.renamed.get(path):
            options = [other for other in run.arguments if other.text.startswith("-")]
            run.reader.report(Call(run.name, (*options, Word(old, word.source)), run.where, run.state.cwd))
        if (parent := children_of(path)) != path:
            run.reader.report(Call("@empties", (Word(parent, word.source),), run.where, run.state.cwd))
    return NOTHING


HANDLERS: dict[str, Handler] = {
    "git": git,
    **dict.fromkeys(("rm", "unlink", "shred"), remove),
    **dict.fromkeys(("mv", "ln"), rename),
    **dict.fromkeys(("curl", "wget", "aria2c"), fetch),
    **dict.fromkeys(("nc", "ncat", "netcat", "socat"), connect),
    **dict.fromkeys(SENDERS - {"curl", "wget", "nc", "ncat", "netcat", "socat"}, send),
}
