"""`holdfast dashboard`."""

from __future__ import annotations

import os

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb, count
from holdfast.client import launch
from holdfast.client.link import open_link
from holdfast.errors import BadValue
from holdfast.paths import find_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.wire.frames import Message

VERB = Verb(
    "dashboard",
    synopsis=[
        "dashboard [--print | --no-open] [--read-only] [--port N] [--json]",
        "dashboard --listen IP:PORT --cert FILE --key FILE [--print | --no-open] [--read-only] [--json]",
        "dashboard --print-token [--json]",
        "dashboard --set-password",
        "dashboard --stop",
        "dashboard plugins [--enable NAME | --disable NAME] [--json]",
    ],
    about="""
        Opens the dashboard in the browser: what runs, whose it is and what needs you, with logs and terminals. The
        daemon serves it on the loopback address; no other process is started.

        The link that it prints works once, within 10 minutes. The page then stays open over restarts of the browser
        tab and of the daemon, for 30 days. A link with --read-only opens a page that can only look.

        Other machines reach it with --listen, which needs a certificate for TLS; without one it is refused.

        --set-password asks on the terminal for a password, with which browsers log in without a link. An empty one
        removes it.

        --print-token prints HOLDFAST_BUS_URL and HOLDFAST_BUS_TOKEN for a program that publishes events: its token can
        do nothing else.

        plugins lists what extends the page: directories below $HOLDFAST_HOME/dashboard/plugins, and those that come
        with holdfast. A plugin that is disabled runs no code. See docs/dashboard-plugins.md.

        --stop ends all pages and links, and closes the ports, which HTTP clients use as well (holdfast daemon http).
        See docs/dashboard.md.
    """,
    options=[
        Option("--print", help="Print the link alone, and open no browser."),
        Option("--no-open", help="Open no browser."),
        Option("--read-only", help="A page that can only look, for sharing."),
        Option(
            "--port", metavar="N", convert=count, help="The port to listen on. Default: 7333, or the next free one."
        ),
        Option("--listen", metavar="IP:PORT", help="Listen for other machines as well, with TLS."),
        Option("--cert", metavar="FILE", help="The certificate and its chain, in PEM form."),
        Option("--key", metavar="FILE", help="The key of the certificate, without a password."),
        Option("--print-token", help="Print the address and the token for a program that publishes events."),
        Option("--set-password", help="Set the password that browsers can log in with; it is asked for."),
        Option("--stop", help="End all pages, and stop listening."),
        Option("--enable", metavar="NAME", help="With plugins: enable this one."),
        Option("--disable", metavar="NAME", help="With plugins: disable this one."),
        JSON,
    ],
    exits=[("0", "Done.")],
    examples=[
        ("Open it in the browser", "holdfast dashboard"),
        ("A link for someone who may look and do nothing", "holdfast dashboard --read-only --print"),
        (
            "From another machine: this there, then open the link here",
            "ssh -L 7333:127.0.0.1:7333 HOST holdfast dashboard --print",
        ),
    ],
)

_TIME_LIMIT = 60.0


def run(given: Given) -> int:
    is_plugins = given.words == ["plugins"]
    if not is_plugins:
        given.only()
        if given.enable is not None or given.disable is not None:
            raise BadValue("--enable and --disable go with plugins", next="holdfast dashboard plugins")
    opens = given.print or given.no_open or given.read_only or given.listen or given.cert or given.key
    if is_plugins:
        if opens or given.stop or given.print_token or given.set_password or given.port is not None:
            raise BadValue("dashboard plugins takes --enable NAME, --disable NAME and --json alone", next=given.usage)
        return _plugins(given)
    if sum((given.stop, given.print_token, given.set_password, bool(opens or given.port is not None))) > 1:
        raise BadValue("--stop, --print-token and --set-password go alone", next=given.usage)
    if given.set_password:
        if given.json:
            raise BadValue("--set-password prints no JSON", next=given.usage)
        return _set_password()
    if given.listen is not None and given.port is not None:
        raise BadValue("--port is for 127.0.0.1", next="give the port in --listen IP:PORT")
    if given.listen is None and (given.cert or given.key):
        raise BadValue("--cert and --key go with --listen", next=given.usage)
    reply = _ask(_request(given))
    if given.json:
        console.out_json(reply)
    elif given.stop:
        console.say("all pages of the dashboard are closed; HTTP is served on the Unix socket only")
    elif given.print_token:
        console.out(f"HOLDFAST_BUS_URL={reply['url']}")
        console.out(f"HOLDFAST_BUS_TOKEN={reply['token']}")
    else:
        console.out(reply["link"])
        if not reply["is_built"]:
            console.say("this installation has no page to show: run ./scripts/setup in a clone, or install a wheel")
        if not given.print:
            _open(given, reply)
    return 0


def _set_password() -> int:
    password = _typed("new password for the dashboard, not shown; empty for none: ")
    if password and _typed("the same again: ") != password:
        raise BadValue("the two differ", next="holdfast dashboard --set-password")
    _ask({"what": "password", "password": password})
    console.say("the password is set" if password else "no password is set; links work as before")
    return 0


def _typed(question: str) -> str:
    from getpass import getpass

    try:
        with open("/dev/tty", "rb"):
            pass
        typed = getpass(question)
    except (OSError, EOFError):
        raise BadValue("a password is typed on a terminal, and there is none", next="call it in a terminal") from None
    try:
        typed.encode()
    except UnicodeEncodeError:
        raise BadValue("the password is not valid UTF-8", next="holdfast dashboard --set-password") from None
    return typed


def _plugins(given: Given) -> int:
    if given.enable is not None and given.disable is not None:
        raise BadValue("give --enable NAME or --disable NAME", next=given.usage)
    from holdfast.client.sync import connect

    name = given.disable if given.enable is None else given.enable
    with connect() as client:
        if name is not None:
            client.set_plugin(name, given.enable is not None)
        found = client.plugins()
    if given.json:
        console.out_json(found)
        return 0
    if not found:
        console.say("there are no plugins")
        return 0
    rows = [
        (one["name"], _state(one), one["version"], one["source"], one["error"] or one["description"] or "-")
        for one in found
    ]
    console.out(console.table(("NAME", "STATE", "VERSION", "SOURCE", "ABOUT"), rows))
    return 0


def _state(plugin: Message) -> str:
    return "error" if plugin["error"] else "enabled" if plugin["enabled"] else "disabled"


def _request(given: Given) -> Message:
    if given.stop or given.print_token:
        return {"what": "close" if given.stop else "token"}
    # The daemon works in another directory.
    files = {name: os.path.abspath(path) for name in ("cert", "key") if (path := getattr(given, name))}
    return {"port": given.port, "read_only": given.read_only, "listen": given.listen, **files}


def _ask(ask: Message) -> Message:
    """Ask the daemon of this home, also if HOLDFAST_URL is set; starts it if it does not run."""
    link = open_link(find_paths(), launch.session_of(None))
    try:
        reply, _ = link.call("dashboard", ask, _TIME_LIMIT)
        return reply
    finally:
        link.close()


def _open(given: Given, reply: Message) -> None:
    """Open the browser, where there is one that does not take over this terminal."""
    if given.no_open:
        return
    if not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")):
        port = reply["url"].rpartition(":")[2]
        console.say("no browser can be opened here: open the link within 10 minutes, in a browser on this machine")
        if os.environ.get("SSH_CONNECTION"):
            console.say(f"from your machine: ssh -L {port}:127.0.0.1:{port} …, and open the link there")
        return
    import webbrowser

    if not webbrowser.open(reply["link"]):
        console.say("no browser could be started: open the link within 10 minutes")
