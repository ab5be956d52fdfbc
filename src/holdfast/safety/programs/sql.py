"""Clients of databases: the statements they are given are noted as `@sql`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from holdfast.safety.programs.base import Run, as_text
from holdfast.safety.state import Feed, Word

if TYPE_CHECKING:
    from holdfast.safety.programs.base import Handler


class Client(NamedTuple):
    options: tuple[str, ...]
    """Options whose value is statements."""
    operand: int | None = None
    """From which operand on statements follow."""


CLIENTS = {
    "psql": Client(("-c", "--command")),
    "pgcli": Client(("-c", "--command")),
    **dict.fromkeys(("mysql", "mariadb", "mycli"), Client(("-e", "--execute"))),
    **dict.fromkeys(("sqlite3", "sqlite", "litecli"), Client(("-cmd", "--cmd"), 1)),
    "duckdb": Client(("-c", "-s", "--command"), 1),
    **dict.fromkeys(("clickhouse-client", "clickhouse"), Client(("-q", "--query"))),
    "cqlsh": Client(("-e", "--execute")),
    "sqlcmd": Client(("-Q", "-q")),
    "snowsql": Client(("-q", "--query")),
    "bq": Client((), 1),
    "trino": Client(("--execute",)),
    "presto": Client(("--execute",)),
    "cockroach": Client(("-e", "--execute")),
    "usql": Client(("-c", "--command")),
    "mongosh": Client(("--eval",)),
    "mongo": Client(("--eval",)),
    "heroku": Client(("-c", "--command")),
    "influx": Client(("-execute", "--execute")),
    "redis-cli": Client((), 0),
    "valkey-cli": Client((), 0),
}
_COMMENT = re.compile(r"/\*.*?\*/|--[^\n]*", re.DOTALL)
_TEXT = re.compile(r"'(?:[^']|'')*'")
_SHELL = re.compile(r"^\s*(?:\\!|\.shell|\.system|system|\\!)\s*(.+)$", re.MULTILINE)
_PROGRAM = re.compile(r"\bprogram\s+'([^']+)'", re.IGNORECASE)


def client(run: Run) -> Feed | None:
    kind = CLIENTS[run.name]
    texts = [word.marked for word in _given(run, kind)]
    if run.stdin and run.stdin.text:
        texts.append(run.stdin.text)
    for text in texts:
        # Without a sign between them, each line is a statement.
        look_at_statements(
            run, as_text(text).replace("\n", ";\n").replace("'", " ") if kind.operand == 0 else as_text(text)
        )
    return None


def look_at_statements(run: Run, text: str) -> None:
    """Note statements, and read the commands that the client itself would run."""
    for found in _SHELL.finditer(text):
        run.script(found[1])
    for found in _PROGRAM.finditer(text):
        run.script(found[1])
    for statement in split_statements(text):
        run.find("@sql", statement)


def _given(run: Run, kind: Client) -> list[Word]:
    found = [value for option in kind.options if (value := run.option(option))]
    if kind.operand is not None:
        operands = run.operands(["-h", "-p", "-a", "-n", "-u"])[kind.operand :]
        if kind.operand == 0:
            return [*found, *([Word(" ".join(word.marked for word in operands))] if operands else [])]
        found += operands
    return found


def split_statements(text: str) -> list[str]:
    """The statements of a text, without comments and without what stands in quotes."""
    bare = _TEXT.sub("''", _COMMENT.sub(" ", text))
    return [" ".join(part.split()) for part in bare.split(";") if part.strip()][:256]


HANDLERS: dict[str, Handler] = dict.fromkeys(CLIENTS, client)
