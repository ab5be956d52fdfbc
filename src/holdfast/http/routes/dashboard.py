"""/api/v1/dashboard: how a page of the dashboard gets in, who it is, and how it leaves."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import os
import pwd
import socket
from typing import TYPE_CHECKING

from holdfast.daemon.listener.page_access import LONGEST_PASSWORD, TooManyAttempts
from holdfast.errors import BadValue, Denied
from holdfast.http.guard import cookies_of
from holdfast.http.request import HttpRequest
from holdfast.http.responses import HttpRefusal, Response, json_response
from holdfast.http.routing import JSON, Success, operation_route
from holdfast.ops.declare import Operation, Record, Traits, field
from holdfast.peers import foreign_client
from holdfast.version import VERSION

if TYPE_CHECKING:
    from holdfast.ops.kinds import Flag, Text, Time

_NEXT = "open a new link: holdfast dashboard"


class DashboardLogin(Operation):
    """Exchange the key of a link, once, or the password for a cookie and a secret."""

    key: Text | None = field(None, longest=256, help="What stands behind `#key=` in the link.")
    password: Text | None = field(
        None, longest=LONGEST_PASSWORD, help="Instead of a key: what was set by `holdfast dashboard --set-password`."
    )

    class Reply(Record):
        secret: Text = field(help="Goes with every request in the header `Holdfast-Secret`, beside the cookie.")
        read_only: Flag = field(help="Whether the page can only look.")
        instance: Text = field(help="The id of the instance.")
        version: Text = field(help="The release of the daemon.")

    traits = Traits(route="POST /dashboard/login", http_name="logIn")


class DashboardLoginWays(Operation):
    """How a browser can log in, beside links."""

    class Reply(Record):
        password: Flag = field(help="Whether a password is set.")

    traits = Traits(reads=True, route="GET /dashboard/login", http_name="getLoginWays")


class DashboardSession(Operation):
    """Who the client is, and where."""

    class Reply(Record):
        read_only: Flag = field(help="Whether the page can only look.")
        instance: Text = field(help="The id of the instance.")
        version: Text = field(help="The release of the daemon.")
        user: Text = field(help="The user that the daemon runs as.")
        host: Text = field(help="The name of the machine.")
        home: Text = field(help="The directory of the instance.")

    traits = Traits(reads=True, route="GET /dashboard/session", http_name="getDashboardSession")


class DashboardLogout(Operation):
    """End this page: its secret is of no more use."""

    traits = Traits(reads=True, route="POST /dashboard/logout", http_name="logOut")


class DashboardLink(Operation):
    """Make a link for another browser: for a phone, or a read-only one for another user."""

    read_only: Flag = field(False, help="A page that can only look.")

    class Reply(Record):
        link: Text = field(help="It works once. Its host is that of this request.")
        until: Time = field(help="Until when it can be opened.")

    traits = Traits(repeatable=False, route="POST /dashboard/links", http_name="makeLink")


async def make_link(request: HttpRequest) -> Response:
    ask = DashboardLink.read(await request.fields())
    if request.call().is_strict:
        raise Denied("a connection that is bound to its session makes no links", next="ask the user")
    key, until = await request.context.pages.make_key(ask.read_only)
    scheme = "https" if request.is_secure else "http"
    return json_response({"link": f"{scheme}://{request.header('host')}/#key={key}", "until": until}, 201)


async def log_in(request: HttpRequest) -> Response:
    ask = DashboardLogin.read(await request.fields())
    pages = request.context.pages
    if (ask.key is None) == (ask.password is None):
        raise BadValue("give the key of a link, or the password", next=_NEXT)
    await _check_user(request)
    cookies = cookies_of(request.headers, pages.cookie_name)
    try:
        if ask.password is not None:
            opened = await pages.log_in_with_password(ask.password, _network(request), cookies)
        else:
            opened = await pages.log_in(str(ask.key), cookies)
    except TooManyAttempts as refused:
        after = (("retry-after", str(math.ceil(refused.seconds))),)
        raise HttpRefusal(429, "denied", refused.message, next=str(refused.next), headers=after) from None
    except Denied as refused:
        raise HttpRefusal(401, "denied", refused.message, next=refused.next or _NEXT) from None
    reply = {
        "secret": opened.secret,
        "read_only": opened.session.read_only,
        "instance": pages.instance,
        "version": VERSION,
    }
    life = int(opened.session.until - opened.session.began)
    return json_response(reply, headers=(_cookie(request, opened.cookie, life),))


def _network(request: HttpRequest) -> str:
    """Where attempts are counted together: an address, or the part of an IPv6 address that one client has alone."""
    client = request.scope.get("client")
    try:
        address = ipaddress.ip_address(client[0] if client else "")
    except ValueError:
        return "local"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


async def login_ways(request: HttpRequest) -> Response:
    return json_response({"password": request.context.pages.has_password})


async def _check_user(request: HttpRequest) -> None:
    """The link is an argument of the browser's command, which other users can see: it is of no use to them."""
    client, server = request.scope.get("client"), request.scope.get("server")
    if not request.scope["state"]["tcp"] or not client or not server:
        return
    uid = await asyncio.to_thread(foreign_client, tuple(client), tuple(server))
    if uid is not None:
        raise HttpRefusal(403, "denied", "this dashboard belongs to another user", next=_NEXT)


async def session(request: HttpRequest) -> Response:
    reply = {
        "read_only": request.is_read_only,
        "instance": request.context.pages.instance,
        "version": VERSION,
        "user": _user(),
        "host": socket.gethostname(),
        "home": request.context.paths.home,
    }
    return json_response(reply)


async def log_out(request: HttpRequest) -> Response:
    if request.page is None:  # with the token there is nothing to end
        return Response(204)
    is_last = await request.context.pages.log_out(request.page)
    return Response(204, headers=(_cookie(request, "", 0),) if is_last else ())


def _cookie(request: HttpRequest, value: str, life: int) -> tuple[str, str]:
    secure = "; Secure" if request.is_secure else ""
    name = request.context.pages.cookie_name
    return "set-cookie", f"{name}={value}; Max-Age={life}; Path=/; HttpOnly; SameSite=Strict{secure}"


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


ROUTES = [
    operation_route(
        DashboardLogin,
        log_in,
        errors=(413, 415, 429, 507),
        about="No token is needed. The reply sets the cookie. See docs/dashboard.md.",
    ),
    operation_route(DashboardLoginWays, login_ways, about="No token is needed."),
    operation_route(
        DashboardLink,
        make_link,
        errors=(413, 415, 507),
        replies={201: Success("The link", {JSON: DashboardLink.Reply})},
    ),
    operation_route(DashboardSession, session),
    operation_route(DashboardLogout, log_out),
]
