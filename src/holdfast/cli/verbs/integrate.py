"""`holdfast integrate`."""

from __future__ import annotations

from holdfast.cli import colours, console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.errors import BadValue, HoldfastError
from holdfast.extras import install_hint
from holdfast.integrations import NAMES, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.cli.options import Given
    from holdfast.integrations.edits import FileChange

VERB = Verb(
    "integrate",
    synopsis=["integrate [--json]", "integrate NAME [--user|--project] [--dry-run] [--remove] [--json]"],
    about="""
        Without NAME, lists the supported programs and whether they are set up. With NAME, adds the MCP server and the
        hooks that bring notifications into the conversation to the configuration of that program.
        docs/integrations.md describes each.

        Nothing else in these files changes, neither order nor layout nor comments; --remove restores them exactly.
        Repeating it changes nothing. A file that cannot be parsed is left as it is.

        With --json an array of integrations (name, summary, scopes; user and project: on, off, outdated, unreadable);
        with a name an object: name, scope, changed (for each file path, diff), written.
    """,
    options=[
        Option("--user", help="In the configuration of this user. The default."),
        Option("--project", help="In the shared configuration of the project in this directory."),
        Option("--dry-run", help="Show the changes, and write nothing."),
        Option("--remove", help="Remove what it added."),
        JSON,
    ],
    exits=[("0", "Done, also if there was nothing to change.")],
    examples=[
        ("List the programs", "holdfast integrate"),
        ("Show the changes", "holdfast integrate claude-code --dry-run"),
        ("Set it up", "holdfast integrate claude-code"),
        ("Remove it", "holdfast integrate claude-code --remove"),
    ],
)


def run(given: Given) -> int:
    if not given.words:
        _refuse_alone(given)
        return _list(given)
    (name,) = given.only("NAME")
    if name not in NAMES:
        raise BadValue(f"no integration {name[:80]!r}", next=f"one of: {', '.join(NAMES)}")
    if given.user and given.project:
        raise BadValue("integrate: --user or --project, not both", next=given.usage)
    return _change(load(name), "project" if given.project else "user", given)


def _refuse_alone(given: Given) -> None:
    for key in ("remove", "dry_run", "user", "project"):
        if getattr(given, key):
            raise BadValue(f"integrate: --{key.replace('_', '-')} needs NAME", next="holdfast integrate")


def _list(given: Given) -> int:
    from holdfast.integrations.edits import state_of

    rows = []
    for name in NAMES:
        module = load(name)
        row = {"name": name, "summary": module.SUMMARY, "scopes": list(module.SCOPES)}
        rows.append({**row, **{scope: state_of(module.edits(scope)) for scope in module.SCOPES}})
    if given.json:
        console.out_json(rows)
        return 0
    colour = {"on": colours.GREEN, "outdated": colours.YELLOW, "unreadable": colours.RED}
    cells = [(row["name"], *(row.get(scope, "-") for scope in ("user", "project")), row["summary"]) for row in rows]
    head = ("NAME", "USER", "PROJECT", "WHAT")
    console.out(console.table(head, cells, lambda row, column: colour.get(cells[row][column], colours.PLAIN)))
    return 0


def _change(module: Any, scope: str, given: Given) -> int:
    from holdfast.integrations.edits import planned, write

    if not given.remove:
        _expect_sdk()
    changes = planned(module.edits(scope), given.remove)
    if not given.dry_run:
        write(changes)
    if given.json:
        shown = [{"path": change.path, "diff": change.diff} for change in changes]
        console.out_json({"name": module.NAME, "scope": scope, "changed": shown, "written": not given.dry_run})
    else:
        _show(module, changes, given)
    return 0


def _expect_sdk() -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise HoldfastError("the MCP SDK is not installed", next=f"{install_hint('mcp')}, then try again")


def _show(module: Any, changes: list[FileChange], given: Given) -> None:
    for change in changes:
        console.out(console.visible_lines(change.diff) if given.dry_run else change.path)
    if not changes:
        console.say(f"{module.NAME} is {'not set up' if given.remove else 'already set up'}; nothing to do")
    elif given.dry_run:
        console.say("nothing was written: leave out --dry-run to write it")
    elif given.remove:
        console.say(f"{module.NAME} is removed", colours.GREEN)
    else:
        console.say(f"{module.NAME} is set up: {module.AFTERWARDS}", colours.GREEN)
