"""Programs that run code of another language or statements of a database.

Code given on the command line or on standard input is searched, not understood: its text is reported as `@code`,
deletes and writes with a literal path as calls, and strings that it may pass to a shell are read as commands. Code
that is computed, piped or fetched cannot be judged, and asks.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.safety.marks import UNKNOWN
from holdfast.safety.programs.base import Run, as_text
from holdfast.safety.programs.unknown import look_at_words
from holdfast.safety.programs.wrappers import wrapper
from holdfast.safety.state import Feed, SimulatedCall, Word
from holdfast.safety.tables import DATABASES, FETCHERS, LANGUAGES, WRAPPERS, DatabaseClient, Language

if TYPE_CHECKING:
    from holdfast.safety.programs.base import Handler

#: More of a code text is not searched.
_MOST_CODE = 20000
#: Strings that are concatenated in the code.
_JOINED = re.compile(r"""(?<=\w)"\s*[+.]\s*"|(?<=\w)'\s*[+.]\s*'""")
_STRINGS = re.compile(
    r'"((?:[^"\\]|\\.){1,2000})"|\'((?:[^\'\\]|\\.){1,2000})\'|`([^`]{1,2000})`|(?:\bqx|%x)[({/]([^)}/]+/?[^)}/]*)',
    re.DOTALL,
)
_PATH = re.compile(r"(?:[~/.]|\w:)[^\s*?<>|;&]{1,300}")
_LITERAL = r"(?:[rbf]?[\"'<](?P<path>[^\"'\n>]{1,500})[\"'>])"
_DELETES = re.compile(
    r"(?:\b|(?=\.))(?:(?P<tree>rmtree|rm_rf?|rmdir\w*|rmSync|rimraf|removedirs|removeSync|remove_(?:tree|dir|entry)\w*|RemoveAll"
    r"|emptyDir\w*|\.rm)|remove|unlink\w*|File\.delete|delete[-_]?[fF]ile|DeleteFile|rm(?=\s*\())\b[\s(]*(?:glob[\s(]*)?"
    rf"{_LITERAL}?(?P<more>(?=[^)\n]{{0,80}}\brecursive\b))?"
)
_PATH_DELETES = re.compile(rf"\bPath\(\s*{_LITERAL}\s*\)[\w.()]*\.(?:unlink|rmdir)\b")
_WRITES = re.compile(r"[\"'][wax]b?\+?[\"']|\b(?:write|append)(?:_|File|\()|File\.(?:write|open)|[\"']\s*>")
#: Code that passes strings to a shell or starts programs.
_STARTS = re.compile(
    r"system|exec|spawn|shell|subprocess|popen|open[23]|passthru|\b(?:run|call|cmd|Command|qx|sh)\b|`|%x|[\"']\s*\.?!"
)
#: Commands without quotes, in gdb and expect.
_BARE = re.compile(r"^\s*(?:shell|spawn|!)\s+(.+)$", re.MULTILINE)
#: Code that runs what it reads: calls that run text, and names of the input.
_RUNS = re.compile(
    r"system|\bexec|\beval|popen|spawn|subprocess|child_process|passthru|shell_exec|\bqx\b|%x|`"
    r"|\bloadstring\b|\bload\s*\(\s*io\.|\bopen\b[^;\"'\n]{0,80}[\"'][^\"'\n]{0,80}\|"
)
_INPUT = re.compile(
    r"\$_\b|\$<|stdin\b(?!\s*=)|STDIN|<>|\binput\s*\(|\bgets\b|ARGF|readline|fileinput|argv\b|ARGV|\bio\.(?:lines|read)\b"
)
_LOOP = re.compile(r"-\w*[np]\w*")
_AWK_RUNS = re.compile(
    r"""system\s*\((?!\s*"[^"]*"\s*\))|[^"\s|]\s*\|&?\s*getline|print[^;}]*[^|]\|&?\s*(?:"(?:\S*/)?\w?\w?sh\b|(?!getline)[A-Za-z$(])"""
)
_AWK_WRITES = re.compile(r'>>?\s*"([^"]+)"')
_SED_WRITES = re.compile(r"(?:^|[\d$/;{|,#!])\s*[gpiI\d]*[wW]\s+([^\s;}]+)")
#: The command `e`, and the flag of `s`.
_SED_RUNS = re.compile(
    r"(?:[\d$/!]|(?:^|[;{\n])\s*(?:\d+|\$)?\s*!?\s*)e(?:[\s;}]|$)"
    r"|(?:^|[\s;{}/!\d$])s(\W)(?:\\.|(?!\1)[^\\]){0,500}\1(?:\\.|(?!\1)[^\\]){0,500}\1[gpiIM\d]*e[gpiIMe\d]*\s*(?:[;}\n]|$)",
    re.DOTALL,
)
_EDITOR_RUNS = re.compile(
    r"^:?[\w\s%]*!|\b(?:system|systemlist|delete|term_start|job_start|exec\w*|python3?|lua|perl|ruby)\b"
)
_SQL_COMMENT = re.compile(r"/\*.*?\*/|--[^\n]*", re.DOTALL)
_SQL_TEXT = re.compile(r"'(?:[^']|'')*'")
#: The machine in `postgres://user@host/name` and `host=name`.
_SQL_HOST = re.compile(r"(?:^\w[\w+]*://(?:[^@/]*@)?|\bhost=)([\w.-]+)")
#: Commands that a database client passes to a shell.
_SQL_SHELL = re.compile(r"(?im)^\s*(?:\\!|\.shell|\.system|system)\s*(.+)$|\bprogram\s+'([^']+)'")


def interpreter(run: Run) -> Feed | None:
    language = LANGUAGES[run.name]
    if run.name in WRAPPERS:
        wrapper(run)
    given = _inline(run, language)
    loops = run.name in ("perl", "ruby") and any(_LOOP.fullmatch(word.text) for word in run.arguments)
    for word in given:
        look_at_code(run, word.marked, word.source)
        if _RUNS.search(word.text) and (loops or _INPUT.search(word.text)):
            run.find("@unknown-code", word.source)
    if not given and not run.has("--version", "-V", "-h", "--help"):
        _from_elsewhere(run, language)
    return None


def _inline(run: Run, language: Language) -> list[Word]:
    found: list[Word] = []
    for place, word in enumerate(run.arguments):
        following = run.arguments[place + 1 : place + 2]
        for option in language.inline:
            bundle = len(option) == 2 and re.fullmatch(rf"-\w{{0,5}}{option[1]}", word.text)
            if word.text == option or bundle:
                found += following
            elif word.text.startswith(option + "=") and option.startswith("--"):
                found.append(Word(word.marked[len(option) + 1 :], word.source))
            elif len(option) == 2 and word.text.startswith(option) and run.name.startswith(("python", "perl", "ruby")):
                found.append(Word(word.marked[2:], word.source))
        if language.subcommand and word.text == language.subcommand:
            found += following
    return found


def _from_elsewhere(run: Run, language: Language) -> None:
    """Code from a module, a file or the standard input."""
    if module := run.option("-m") if run.name.startswith(("python", "pypy")) else None:
        line = run.arguments[run.arguments.index(module) if module in run.arguments else 0 :]
        if module.text == "timeit":
            for word in line[1:]:
                look_at_code(run, word.marked, word.source)
        run.perform(line)  # `python -m twine upload` is a call of twine
        return
    operands = run.operands(language.values)
    if language.subcommand:
        look_at_words(run, run.arguments, is_script=True)
    elif operands:
        file = operands[0]
        if UNKNOWN in file.marked and FETCHERS.intersection(re.findall(r"\w+", file.source)):
            run.find("@piped-code", file.source)
        script = replace(run, name=file.text.rpartition("/")[2])
        look_at_words(script, run.arguments[run.arguments.index(file) + 1 :], is_script=True)
        _look_at_feed(run, run.held(file), from_file=file.text != "-" and not file.text.startswith("/dev/fd/"))
    elif language.reads:
        _look_at_feed(run, run.stdin, from_file=False)


def _look_at_feed(run: Run, feed: Feed | None, *, from_file: bool) -> None:
    if feed is None or feed.programs == ("<",):
        return
    if feed.text is not None:
        look_at_code(run, feed.text, feed.source)
    elif not from_file or FETCHERS.intersection(feed.programs):
        run.find("@piped-code", *feed.programs)


def look_at_code(run: Run, marked: str, source: str) -> None:
    """Report a piece of code, and read the commands that it starts."""
    if UNKNOWN in marked and FETCHERS.intersection(re.findall(r"\w+", source)):
        run.find("@piped-code", source)
    elif marked.strip() == UNKNOWN:
        run.find("@unknown-code", source)
    code = _JOINED.sub("", as_text(marked))
    run.find("@code", code, run.name)
    code = code[:_MOST_CODE]
    _report_files(run, code)
    if _STARTS.search(code):
        read_commands(run, code)
    if run.name in ("pwsh", "powershell"):
        _read_quietly(run, code)
    for found in _BARE.finditer(code):
        _read_quietly(run, found[1])


def _report_files(run: Run, code: str) -> None:
    """Report deletes as calls of `rm`, writes as `>`, and other literal paths as `@code-path`."""

    def report(program: str, path: str, *options: Word) -> None:
        word = Word(path.replace("~", "/root")) if path else Word(UNKNOWN, code[:200])
        run.reader.report(SimulatedCall(program, (*options, word), run.where, run.state.cwd))

    temporary = re.search(r"\bmkdtemp\b|TemporaryDirectory", code)
    for found in _DELETES.finditer(code):
        recursive = [Word("-r")] if found["tree"] or found["more"] is not None else []
        if found["path"] or (recursive and not temporary):
            report("rm", found["path"] or "", *recursive)
    for found in _PATH_DELETES.finditer(code):
        report("rm", found["path"])
    paths = ">" if _WRITES.search(code) else "@code-path"
    for text in _strings(code):
        path = text.lstrip("> ")
        if _PATH.fullmatch(path):
            report("@code-path", path)
            report(paths, path)


def _strings(code: str) -> list[str]:
    return [next(part for part in found.groups() if part is not None) for found in _STRINGS.finditer(code)]


def read_commands(run: Run, code: str) -> None:
    """Read the strings of code as commands: each by itself, and lists of strings as one command line."""
    strings = _strings(code)[:64]
    for text in strings:
        _read_quietly(run, text.replace("\\", ""))
    words = [Word(text, text) for text in strings if re.fullmatch(r"[\w./~{}*-]+", text)]
    for place, word in enumerate(words[:16]):
        if place + 1 < len(words) and re.fullmatch(r"[a-z][\w.-]*|/\S*/[a-z][\w.-]*", word.text):
            line = [Word(other.marked.replace("~", "/root"), "") for other in words[place:]]
            if all(other.text.startswith("-") for other in line[1:]):
                line.append(Word(UNKNOWN, code[:200]))
            run.perform(line, Feed(""))


def _read_quietly(run: Run, text: str) -> None:
    """Read a string that may be a command; that it is none is no finding."""
    state = run.state.copy()
    state.arguments = ()
    run.reader.read_quietly(as_text(text), state, Feed(""))


def awk(run: Run) -> Feed | None:
    code = run.option("-e", "--source") or next(iter(run.operands(["-F", "-v", "-f", "-i"])), None)
    if code and not run.has("-f"):
        run.find("@code", as_text(code.marked), run.name)
        if _AWK_RUNS.search(code.text):
            run.find("@unknown-code", code.source)
        if re.search(r"\bsystem\s*\(|\|", code.text):
            read_commands(run, as_text(code.marked))
        _report_writes(run, _AWK_WRITES, code)
    return None


def _report_writes(run: Run, writes: re.Pattern[str], code: Word) -> None:
    """Report files that code writes as redirections."""
    for path in writes.findall(code.marked):
        run.reader.report(SimulatedCall(">", (Word(path, code.source),), run.where, run.state.cwd))


def sed(run: Run) -> Feed | None:
    """The `e` command and flag run a shell, `w` writes a file."""
    scripts = [*run.option_values(("-e", "--expression")), *run.operands(["-e", "-f", "--expression"])[:1]]
    if any(_SED_RUNS.search(script.text) for script in scripts):
        run.find("@unknown-code", run.where)
    for script in scripts:
        _report_writes(run, _SED_WRITES, script)
    return None


def editor(run: Run) -> Feed | None:
    """`vim -c ':!command'`, and an `ed` that reads commands."""
    commands = [word.text for word in run.option_values(("-c", "--cmd"))]
    commands += [word.text[1:] for word in run.arguments if word.text.startswith("+")]
    commands += (run.stdin.text or "").splitlines() if run.stdin else []
    if any(_EDITOR_RUNS.search(command) for command in commands):
        run.find("@unknown-code", run.where)
    return None


def database(run: Run) -> Feed | None:
    client = DATABASES[run.name]
    if run.name in WRAPPERS:
        wrapper(run)
    given = _statements_given(run, client)
    look_at_words(run, [word for word in run.arguments if word not in given])
    texts = [word.marked for word in given]
    if (run.stdin and run.stdin.text is None) or run.option("-f", "--file", "-i", "--queries-file"):
        for host in _hosts(run):
            run.find("@sql-file", host)
    if run.stdin and run.stdin.text:
        texts.append(run.stdin.text)
    for text in map(as_text, texts):
        # Redis has no separator: each line is a statement.
        look_at_statements(run, text.replace("\n", ";\n").replace("'", " ") if client.operand == 0 else text)
    return None


def _hosts(run: Run) -> list[str]:
    """The machines that the arguments of a database client name."""
    named = [word.text for word in run.option_values(("-h", "--host", "-S", "--server"))]
    return named + [found[1] for word in run.arguments if (found := _SQL_HOST.search(word.text))]


def _statements_given(run: Run, client: DatabaseClient) -> list[Word]:
    found = run.option_values(client.options)
    if client.operand is None:
        return found
    operands = run.operands(["-h", "-p", "-a", "-n", "-u"])[client.operand :]
    if client.operand == 0 and operands:
        return [*found, Word(" ".join(word.marked for word in operands))]
    return found + operands


def look_at_statements(run: Run, text: str) -> None:
    """Report statements without comments and quoted text, and read the commands that the client runs."""
    for found in _SQL_SHELL.finditer(text):
        run.script(found[1] or found[2])
    bare = _SQL_TEXT.sub("''", _SQL_COMMENT.sub(" ", text))
    for statement in [" ".join(part.split()) for part in bare.split(";") if part.strip()][:256]:
        run.find("@sql", statement)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(LANGUAGES, interpreter),
    **dict.fromkeys(DATABASES, database),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), awk),
    **dict.fromkeys(("sed", "gsed"), sed),
    **dict.fromkeys(("vim", "vi", "nvim", "ex", "view", "ed"), editor),
}
