"""Which clients are accepted. No I/O.

On the socket the kernel has checked the user already. On TCP every user of the machine can connect, and so can every
web page in a browser on it. A request must name this machine as its host (a page whose own name resolves to it does
not), must not come from another origin, and must have the token, or the cookie and the secret of a page of the
dashboard.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from holdfast.daemon.listener.page_access import PageSession
from holdfast.http.responses import HttpRefusal
from holdfast.model.addresses import is_loopback

#: Browsers cannot set headers on a WebSocket: they offer these subprotocols in their place.
TOKEN_SUBPROTOCOL = "holdfast.token."
SECRET_SUBPROTOCOL = "holdfast.secret."
SUBPROTOCOL = "holdfast.v1"
#: The secret of a page; its cookie comes by itself.
SECRET_HEADER = "holdfast-secret"
PUBLISH_PATH = "/api/pub"
LOGIN_PATH = "/api/v1/dashboard/login"
#: Served without a token.
OPEN_PATHS = frozenset({"/livez", LOGIN_PATH})
_MOST_OFFERED = 20

_NEXT_TOKEN = "send Authorization: Bearer with the content of $HOLDFAST_HOME/token"
_NEXT_LINK = "open a new link: holdfast dashboard"


class FindsPages(Protocol):
    """As `PageAccess`."""

    @property
    def cookie_name(self) -> str: ...

    def find(self, cookies: list[str], offered: list[str]) -> PageSession | None: ...


def check(
    headers: Mapping[str, Sequence[str]],
    path: str,
    token: str | None,
    subprotocols: Sequence[str] = (),
    pages: FindsPages | None = None,
    is_page: bool = False,
    names: Collection[str] | None = None,
    publishes: bool = False,
) -> PageSession | None:
    """The page's session, where that is what lets the request in. Raises HttpRefusal.

    `token` is None on the socket. Header names are in lower case. `is_page`: the request is for a file of the page,
    which has nothing secret and may be opened from anywhere. `names`: on TLS, those of the certificate. `publishes`:
    the client has shown that it may publish events, and the request is for that.
    """
    host = _only(headers, "host")
    if token is not None and not host_is_loopback(host) and not (names is not None and host_is_named(host, names)):
        raise HttpRefusal(403, "denied", "the request is for another host", next="call it as 127.0.0.1 or localhost")
    origin = _only(headers, "origin")
    if origin is not None and not same_origin(origin, host, "http" if names is None else "https"):
        raise HttpRefusal(403, "denied", "the request comes from another origin", next="call it without a web page")
    if token is None or is_page:
        return None
    if _only(headers, "sec-fetch-site") in ("cross-site", "same-site"):  # where the browser sends no Origin
        raise HttpRefusal(403, "denied", "the request comes from another site", next="call it without a web page")
    if publishes or path in OPEN_PATHS or has_token(token, headers, subprotocols):
        return None
    secrets = offered_secrets(headers, subprotocols)
    if pages is not None and secrets:
        found = pages.find(cookies_of(headers, pages.cookie_name), secrets)
        if found is not None and (origin is not None or not subprotocols):  # a browser names it on each WebSocket
            return found
        raise HttpRefusal(401, "denied", "this page of the dashboard was closed, or is too old", next=_NEXT_LINK)
    challenge = (("www-authenticate", 'Bearer realm="holdfast"'),)
    raise HttpRefusal(401, "denied", "the token is missing or wrong", next=_NEXT_TOKEN, headers=challenge)


def host_is_loopback(host: str | None) -> bool:
    """Whether a Host header names this machine, with or without a port."""
    name = _name_of(host)
    return name is not None and is_loopback(name)


def host_is_named(host: str | None, names: Collection[str]) -> bool:
    """Whether a Host header has one of these names, or an IP address, which no other name can stand for."""
    name = (_name_of(host) or "").lower()
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return bool(name) and (name in names or f"*.{name.partition('.')[2]}" in names)


def _name_of(host: str | None) -> str | None:
    """The name in a Host header, without its port; None where it is none."""
    if not host:
        return None
    name, port = host, ""
    if host.startswith("["):
        name, bracket, rest = host[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            return None
        port = rest[1:]
    elif ":" in host:
        name, _, port = host.partition(":")
    return name if not port or (port.isascii() and port.isdigit()) else None


def same_origin(origin: str, host: str | None, scheme: str = "http") -> bool:
    return host is not None and origin.lower() == f"{scheme}://{host.lower()}"


def may_publish(
    publish_token: str, headers: Mapping[str, Sequence[str]], subprotocols: Sequence[str], offered: Sequence[str]
) -> bool:
    """Whether a client has the token for publishing: where others are, or among those in the query (`offered`)."""
    in_query = [f"{TOKEN_SUBPROTOCOL}{word}" for word in offered[:_MOST_OFFERED]]
    return has_token(publish_token, headers, [*subprotocols, *in_query])


def has_token(token: str, headers: Mapping[str, Sequence[str]], subprotocols: Sequence[str]) -> bool:
    offered = [word.removeprefix(TOKEN_SUBPROTOCOL) for word in subprotocols if word.startswith(TOKEN_SUBPROTOCOL)]
    scheme, _, credentials = (_only(headers, "authorization") or "").partition(" ")
    if scheme.lower() == "bearer":
        offered.append(credentials.strip())
    return bool(token) and any(hmac.compare_digest(word.encode(), token.encode()) for word in offered)


def offered_secrets(headers: Mapping[str, Sequence[str]], subprotocols: Sequence[str]) -> list[str]:
    found = [word.removeprefix(SECRET_SUBPROTOCOL) for word in subprotocols if word.startswith(SECRET_SUBPROTOCOL)]
    if (header := _only(headers, SECRET_HEADER)) is not None:
        found.append(header)
    return found[:_MOST_OFFERED]


def cookies_of(headers: Mapping[str, Sequence[str]], name: str) -> list[str]:
    """The values of one cookie: another server on this host name may have set more of them."""
    pairs = (pair.strip().partition("=") for header in headers.get("cookie", ()) for pair in header.split(";"))
    return [value.strip() for key, _, value in pairs if key == name][:_MOST_OFFERED]


def _only(headers: Mapping[str, Sequence[str]], name: str) -> str | None:
    """The header; None where it is missing. One that is sent twice is ambiguous."""
    values = headers.get(name, ())
    if len(values) > 1:
        raise HttpRefusal(400, "bad_value", f"the header {name} is sent twice", next="send it once")
    return values[0] if values else None
