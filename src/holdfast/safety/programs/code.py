"""Programs that run code of another language: what it is given in so many words is looked at, its files are not.

Code is not understood, only looked through: its text is noted as `@code` for the rules, and where it hands strings to
a shell, those strings are read as commands.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from holdfast.safety.marks import UNKNOWN
from holdfast.safety.programs.base import FETCHERS, Run, as_text
from holdfast.safety.state import Call, Feed, Word

if TYPE_CHECKING:
    from holdfast.safety.programs.base import Handler


class Language(NamedTuple):
    inline: tuple[str, ...]
    """Options whose value is code."""
    values: str = ""
    """Other options with a value."""
    subcommand: str = ""
    """A word in front of code that is given as an operand."""
    reads: bool = True
    """Whether it runs its standard input when it is given nothing else."""


_PYTHON = Language(("-c",), "-m -W -X --check-hash-based-pycs")
_PERL = Language(("-e", "-E"), "-I -M -m")
_NODE = Language(("-e", "--eval", "-p", "--print", "-pe"), "-r --require --import -C")
LANGUAGES = {
    **dict.fromkeys(("python", "python2", "python3", "pypy", "pypy3", "ipython", "bpython"), _PYTHON),
    "perl": _PERL,
    "ruby": Language(("-e",), "-I -r"),
    "irb": Language(("-e",)),
    "node": _NODE,
    "nodejs": _NODE,
    "bun": Language(("-e", "--eval", "-p"), reads=False),
    "iex": Language(("-e", "--eval")),
    "rails": Language((), subcommand="runner", reads=False),
    "deno": Language((), subcommand="eval", reads=False),
    "tsx": _NODE,
    "ts-node": _NODE,
    "php": Language(("-r", "-R", "-B", "-E"), "-d -c -f"),
    "lua": Language(("-e",), "-l"),
    "luajit": Language(("-e",), "-l"),
    "Rscript": Language(("-e",)),
    "R": Language(("-e",)),
    "julia": Language(("-e", "-E", "--eval", "--print")),
    "osascript": Language(("-e",)),
    "pwsh": Language(("-c", "-Command", "-command")),
    "powershell": Language(("-c", "-Command", "-command")),
    "elixir": Language(("-e", "--eval")),
    "groovy": Language(("-e",)),
    "expect": Language(("-c",)),
    "tclsh": Language(()),
    "emacs": Language(("--eval", "-eval"), reads=False),
    "gdb": Language(("-ex", "--ex", "-eval-command", "--eval-command"), reads=False),
}
#: Strings that are put together in the code, and in Perl and Ruby strings in brackets.
_JOINED = re.compile(r"""(?<=\w)"\s*[+.]\s*"|(?<=\w)'\s*[+.]\s*'""")
_STRINGS = re.compile(
    r'"((?:[^"\\]|\\.){1,2000})"|\'((?:[^\'\\]|\\.){1,2000})\'|`([^`]{1,2000})`|(?:\bqx|%x)[({/]([^)}/]+/?[^)}/]*)',
    re.DOTALL,
)
#: Commands that stand bare in a line, in gdb and expect.
_BARE = re.compile(r"^\s*(?:shell|spawn|!)\s+(.+)$", re.MULTILINE)
_PATH = re.compile(r"(?:[~/.]|\w:)[^\s*?<>|;&]{1,300}")
_STRING = r"(?:[rbf]?[\"'<](?P<path>[^\"'\n>]{1,500})[\"'>])"
_DELETES = re.compile(
    r"(?:\b|(?=\.))(?:(?P<tree>rmtree|rm_rf|rm_r|remove_tree|rimraf|removeSync|rmdirSync|rmSync|remove_dir_all|RemoveAll"
    rf"|removedirs|emptyDirSync|remove_dir|remove_entry\w*|deltree|\.rm|rmdir)|remove|unlink|unlinkSync|delete_file|File\.delete)\b[\s(]*(?:glob[\s(]*)?{_STRING}?"
)
_TREE_DELETES = re.compile(rf"\b(?:rm|remove|unlink|removeSync)\s*\(\s*{_STRING}[^)]*\brecursive\b")


def _string(name: str) -> str:
    return _STRING.replace("<path>", f"<{name}>")


_WRITES = re.compile(
    rf"\bopen\(\s*{_STRING}\s*,\s*[\"'][wax+]|\b(?:write|append)File(?:Sync)?\(\s*{_string('file')}"
    rf"|\bFile\.(?:write|open)\(\s*{_string('ruby')}|\bPath\(\s*{_string('object')}\s*\)\.write_"
    r"|\bopen\b[^;\n]{0,40}[\"']\s*>{1,2}\s*(?P<perl>[^\"'\n]{1,300})"
)
_PATH_DELETES = re.compile(rf"\bPath\(\s*{_STRING}\s*\)[\w.()]*\.(?:unlink|rmdir)\b")
#: Code that hands strings to a shell or starts programs.
_STARTS = re.compile(
    r"\bsystem\b|\bsubprocess\b|\bpopen\b|\bpopen2\b|\bexec\w*\b|\bspawn\w*\b|\bchild_process\b|\bshell_exec\b|\bpassthru\b"
    r"|\bproc_open\b|\brun\b|\bcall\b|\bcheck_output\b|\bqx\b|`|%x|\bgetoutput\b|\bCommand\b|\bos\.execute\b|\bshell\b"
)


def interpreter(run: Run) -> Feed | None:
    language = LANGUAGES[run.name]
    given = _inline(run, language)
    for word in given:
        look_at_code(run, word.marked, word.source)
    if not given:
        _from_elsewhere(run, language)
    return None


def _inline(run: Run, language: Language) -> list[Word]:
    found: list[Word] = []
    for place, word in enumerate(run.arguments):
        following = run.arguments[place + 1 : place + 2]
        for option in language.inline:
            if word.text == option or _ends_bundle(word.text, option):
                found += following
            elif word.text.startswith(option + "=") and option.startswith("--"):
                found.append(Word(word.marked[len(option) + 1 :], word.source))
            elif len(option) == 2 and word.text.startswith(option) and run.name.startswith(("python", "perl", "ruby")):
                found.append(Word(word.marked[2:], word.source))
        if language.subcommand and word.text == language.subcommand:
            found += following
    return found


def _ends_bundle(text: str, option: str) -> bool:
    return len(option) == 2 and bool(re.fullmatch(r"-\w{1,6}", text)) and text.endswith(option[1])


def _from_elsewhere(run: Run, language: Language) -> None:
    operands = run.operands(language.values.split())
    if run.has("-m"):
        _module(run)
        return
    if run.has("--version", "-V", "-h", "--help"):
        return
    if operands:
        held = run.held(operands[0])
        fetched = UNKNOWN in operands[0].marked and FETCHERS.intersection(re.findall(r"\w+", operands[0].source))
        _look_at_feed(run, held, from_file=operands[0].text != "-" and not operands[0].text.startswith("/dev/fd/"))
        if fetched:
            run.find("@piped-code", operands[0].source)
    elif language.reads:
        _look_at_feed(run, run.stdin, from_file=False)


def _module(run: Run) -> None:
    """`python -m twine upload` is a call of twine."""
    place = next(place for place, word in enumerate(run.arguments) if word.text == "-m")
    if run.name.startswith(("python", "pypy")) and place + 1 < len(run.arguments):
        run.perform(run.arguments[place + 1 :])


def _look_at_feed(run: Run, feed: Feed | None, *, from_file: bool) -> None:
    if feed is None or feed.programs == ("<",):
        return
    if feed.text is not None:
        look_at_code(run, feed.text, feed.source)
    elif not from_file or FETCHERS.intersection(feed.programs):
        run.find("@piped-code", *feed.programs)


def look_at_code(run: Run, marked: str, source: str) -> None:
    """Note a piece of code, and read the commands it starts."""
    code = as_text(marked)
    if UNKNOWN in marked and FETCHERS.intersection(re.findall(r"\w+", source)):
        run.find("@piped-code", source)
    elif marked.strip() == UNKNOWN:
        run.find("@unknown-code", source)
    code = _JOINED.sub("", code)
    run.find("@code", code, run.name)
    note_files(run, code)
    if _STARTS.search(code):
        read_commands(run, code)
    for found in _BARE.finditer(code):
        _quietly(run, found[1])


def note_files(run: Run, code: str) -> None:
    """Note what code deletes as calls of `rm`, and what else it names as `@code-path`."""
    for found in _DELETES.finditer(code[:20000]):
        recursive = [Word("-r")] if found["tree"] else []
        path = Word(found["path"].replace("~", "/root")) if found["path"] else Word(UNKNOWN, found[0])
        made_here = not found["path"] and re.search(r"\bmkdtemp\b|TemporaryDirectory", code)
        if (found["path"] or recursive) and not made_here:
            run.reader.report(Call("rm", (*recursive, path), run.where, run.state.cwd))
    for found in _PATH_DELETES.finditer(code[:20000]):
        run.reader.report(Call("rm", (Word(found["path"].replace("~", "/root")),), run.where, run.state.cwd))
    for found in _TREE_DELETES.finditer(code[:20000]):
        path = Word(found["path"].replace("~", "/root"))
        run.reader.report(Call("rm", (Word("-r"), path), run.where, run.state.cwd))
    for found in _WRITES.finditer(code[:20000]):
        file = next(part for part in found.groups() if part)
        run.reader.report(Call(">", (Word(file.replace("~", "/root")),), run.where, run.state.cwd))
    for found in _STRINGS.finditer(code[:20000]):
        text = next(part for part in found.groups() if part is not None)
        if _PATH.fullmatch(text):
            run.reader.report(Call("@code-path", (Word(text.replace("~", "/root")),), run.where, run.state.cwd))


def read_commands(run: Run, code: str) -> None:
    """Read the strings in code as commands: each by itself, and lists of strings as one command line."""
    strings = [next(part for part in found.groups() if part is not None) for found in _STRINGS.finditer(code[:20000])][
        :64
    ]
    for text in strings:
        _quietly(run, text.replace("\\", ""))
    words = [Word(text, text) for text in strings if re.fullmatch(r"[\w./~{}*-]+", text)]
    for place, word in enumerate(words[:16]):
        if place + 1 < len(words) and re.fullmatch(r"[a-z][\w.-]*|/\S*/[a-z][\w.-]*", word.text):
            line = [Word(other.marked.replace("~", "/root"), "") for other in words[place:]]
            if all(other.text.startswith("-") for other in line[1:]):
                line.append(Word(UNKNOWN, code[:200]))
            run.perform(line, Feed(""))


def _quietly(run: Run, text: str) -> None:
    """Read a string that may be a command; that it is none is no finding."""
    state = run.state.copy()
    state.arguments = ()
    run.reader.read_quietly(as_text(text), state, Feed(""))


def awk(run: Run) -> Feed | None:
    code = run.option("-e", "--source") or next(iter(run.operands(["-F", "-v", "-f", "-i"])), None)
    if code and not run.has("-f"):
        run.find("@code", as_text(code.marked), run.name)
        if re.search(r"\bsystem\s*\(|\|", code.text):
            read_commands(run, as_text(code.marked))
    return None


def sed(run: Run) -> Feed | None:
    scripts = [
        word for word in (run.option("-e", "--expression"), *run.operands(["-e", "-f", "--expression"])[:1]) if word
    ]
    for script in scripts:
        if found := re.search(r"(?:^|[\d$/;{])e\s+(\S.*)", script.text):
            run.script(found[1])
        elif re.search(r"^s(\W).*\1.*\1[gpiI\d]*e[gpiI]*$", script.text, re.DOTALL):
            run.script(re.split(r"(?<!\\)" + re.escape(script.text[1]), script.text)[2].replace("\\", ""))
            run.find("@code", script.text, "sed-e")
    return None


def editor(run: Run) -> Feed | None:
    """`vim -c ':!command'` and an `ed` that is fed commands."""
    texts = [word.text for word in run.arguments]
    commands = [texts[place + 1] for place, text in enumerate(texts[:-1]) if text in ("-c", "--cmd")]
    commands += [text[1:] for text in texts if text.startswith("+")]
    if run.stdin and run.stdin.text:
        commands += run.stdin.text.splitlines()
    for command in commands:
        if found := re.match(r":?\s*(?:silent\S*\s+)?(?:r\w*\s+)?!(.*)", command):
            run.script(found[1])
        elif re.search(r"\b(system|systemlist|term_start|job_start|exec\w*|python3?|lua|perl|ruby)\b", command):
            read_commands(run, command)
    return None


def archive(run: Run) -> Feed | None:
    """`tar` runs what its checkpoint actions and filters say."""
    for word in run.arguments:
        if found := re.match(
            r"--(?:checkpoint-action=exec|to-command|use-compress-program|rsh-command)=(.*)", word.text
        ):
            run.script(found[1])
    for option in ("-I", "-F", "--info-script", "--new-volume-script"):
        if (value := run.option(option)) and not value.text.startswith("-"):
            run.script(value.marked)
    return None


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(LANGUAGES, interpreter),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), awk),
    **dict.fromkeys(("sed", "gsed"), sed),
    **dict.fromkeys(("vim", "vi", "nvim", "ex", "view", "ed"), editor),
    **dict.fromkeys(("tar", "gtar", "bsdtar"), archive),
}
