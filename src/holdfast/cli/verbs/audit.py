"""`holdfast audit`."""

from __future__ import annotations

from holdfast.cli import colours, console
from holdfast.cli.options import JSON, Option, Verb, count
from holdfast.client.sync import connect
from holdfast.errors import BadValue, HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.wire.frames import Message

_PAGE = 1000

VERB = Verb(
    "audit",
    synopsis=["audit [-n COUNT] [--verify] [--json]"],
    about="""
        Shows the audit log, oldest first: commands that were checked and the decision, requests for approval and their
        answers, and actions on processes of another session.

        Each entry holds the hash of the one before it. --verify checks the whole log, and names the first entry that
        was changed or is missing. It prints the last hash: keep it elsewhere to prove later that the log up to there
        was not rewritten.
    """,
    options=[
        Option("-n", "--lines", metavar="COUNT", convert=count, help="The number of newest entries. Default: 100."),
        Option("--verify", help="Check the log instead of showing it."),
        JSON,
    ],
    exits=[("0", "Shown; with --verify: no entry was changed or is missing.")],
    examples=[
        ("The newest entries", "holdfast audit -n 20"),
        ("Check that it was not changed", "holdfast audit --verify"),
    ],
)


class AuditBroken(HoldfastError):
    """An entry of the audit log was changed or is missing."""

    code = "audit_broken"
    next = "compare with a backup of the store: holdfast daemon status --json | jq .home"


def run(given: Given) -> int:
    given.only()
    if given.lines is not None and not 1 <= given.lines <= _PAGE:
        raise BadValue(f"audit: -n takes 1 to {_PAGE}", next=given.usage)
    with connect() as client:
        answer = client.audit(limit=1 if given.verify else given.lines, verify=given.verify)
    if given.verify:
        return _verified(answer["verified"], given.json)
    if given.json:
        console.out_json(answer["entries"])
    else:
        for entry in answer["entries"]:
            console.out(_line(entry))
    return 0


def _verified(verified: Message, as_json: bool) -> int:
    if verified["fault"] is not None:
        raise AuditBroken(verified["fault"], data=verified)
    if as_json:
        console.out_json(verified)
    else:
        console.out(f"{verified['entries']} entries, all as they were written; the last is {verified['head']}")
    return 0


def _line(entry: Message) -> str:
    import time

    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry["at"]))
    shown = {"seq", "at", "what", "hash"}
    fields = " ".join(
        f"{key}={_short(value)}" for key, value in entry.items() if key not in shown and value is not None
    )
    what = colours.paint(console.visible(str(entry["what"])), colours.BOLD)
    return f"{entry['seq']:>6} {at} {what} {console.visible(fields)}"


def _short(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
