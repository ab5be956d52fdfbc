"""`holdfast backends`."""

from __future__ import annotations

import os

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.client.sync import connect
from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.wire.frames import Message

VERB = Verb(
    "backends",
    synopsis=[
        "backends [--json]",
        "backends clean [--json]",
        "backends stop NAME [--all] [--json]",
        "backends login NAME [--host DEST]",
    ],
    about="""
        Shows where commands can run: this machine (local), containers, hosts over SSH, and the backends of config.toml,
        each with the places that were used. holdfast run --backend NAME runs a command there.

        clean removes containers and sandboxes of this instance that no process needs. A place that is unused is removed
        by itself after a while, too.

        stop NAME closes the places of a backend in which nothing runs: containers are removed, connections to hosts are
        closed. With --all also places in which processes run; these are killed first, as by holdfast kill.

        login NAME opens a connection to a host that asks for a password or a code. Later commands use this connection.

        With --json an array of objects: name, kind, state (ready, unusable), detail, places (key, task,
        options, state, processes, trouble). clean prints an object:
        removed, failed; stop: closed, kept, ended.
    """,
    options=[
        Option("--all", help="With stop: also places in which processes run."),
        Option("--host", metavar="DEST", help="With login: the host, if the backend does not name one."),
        JSON,
    ],
    exits=[("0", "Shown, or done."), ("1", "clean: something could not be removed. stop: a place is in use.")],
    examples=[
        ("What is there", "holdfast backends"),
        ("A command in a container", "holdfast run --backend podman --image docker.io/library/alpine uname"),
        ("A command on another host", "holdfast run --host me@build-server -- make"),
    ],
)  # fmt: skip

_HEAD = ("NAME", "KIND", "STATE", "PLACES", "DETAIL")
_PLACE_HEAD = ("BACKEND", "PLACE", "STATE", "TASK", "PROCESSES", "OPTIONS")
_ACTIONS = ("clean", "stop", "login")


def run(given: Given) -> int:  # noqa: RET503 - the last statement does not return
    action = given.words[0] if given.words else None
    _check(given, action)
    with connect() as client:
        if action == "clean":
            return _shown_clean(given, client.clean_backends())
        if action == "stop":
            return _shown_stop(given, client.stop_backend(given.words[1], all=bool(given.all)))
        if action is None:
            return _show(given, client.backends())
        argv = client.backend_login(given.words[1], host=given.host)
    os.execvp(argv[0], argv)


def _check(given: Given, action: str | None) -> None:
    if action is None:
        if given.all or given.host is not None:
            raise BadValue("backends: --all is for stop, --host for login", next=given.usage)
        return
    if action not in _ACTIONS:
        raise BadValue(f"backends: unknown action {action[:80]!r}", next=given.usage)
    wanted = 1 if action == "clean" else 2
    if len(given.words) != wanted:
        raise BadValue(f"backends {action}: {'too many words' if len(given.words) > wanted else 'which backend?'}",
                       next=f"holdfast backends {action}{'' if wanted == 1 else ' NAME'}")  # fmt: skip
    if (given.all and action != "stop") or (given.host is not None and action != "login"):
        raise BadValue("backends: --all is for stop, --host for login", next=given.usage)


def _show(given: Given, found: list[Message]) -> int:
    if given.json:
        console.out_json(found)
        return 0
    rows = [
        (one["name"], one["kind"], one["state"], str(len(one["places"])), one["detail"])
        for one in found
    ]  # fmt: skip
    console.out(console.table(_HEAD, rows))
    places = [(one["name"], place) for one in found for place in one["places"]]
    if places:
        console.out("")
        console.out(console.table(_PLACE_HEAD, [_place_row(name, place) for name, place in places]))
    for name, place in places:
        if place.get("trouble"):
            console.out(console.visible(f"{name} {place['key']} does not answer: {place['trouble']}"))
    return 0


def _place_row(name: str, place: Message) -> tuple[str, ...]:
    options = " ".join(f"{key}={value}" for key, value in place["options"].items() if value)
    return (name, place["key"], place["state"], place["task"] or "-", str(place["processes"]), options)


def _shown_clean(given: Given, found: Message) -> int:
    if given.json:
        console.out_json(found)
    else:
        for name in found["removed"]:
            console.out(f"removed {name}")
        for failed in found["failed"]:
            console.say(failed)
        if not found["removed"] and not found["failed"]:
            console.say("nothing to remove")
    return 1 if found["failed"] else 0


def _shown_stop(given: Given, found: Message) -> int:
    if given.json:
        console.out_json(found)
    else:
        ended = f", and {found['ended']} processes ended" if found["ended"] else ""
        console.say(f"closed: {found['closed']}{ended}")
        if found["kept"]:
            console.say(f"kept, because processes run there: {found['kept']} (--all ends them)")
    return 1 if found["kept"] else 0
