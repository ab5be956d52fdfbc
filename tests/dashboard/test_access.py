"""Who gets into the dashboard: links, cookies, secrets, and requests that come from elsewhere."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

import holdfast
from holdfast.ops.catalog import OPERATIONS
from tests.dashboard.page import Page, kill_daemon, new_link, open_page, send
from tests.support import eventually, run_cli

SESSION = "/api/v1/dashboard/session"


@pytest.fixture(scope="module")
def page(instance: Path) -> Page:
    return open_page()


def test_a_link_opens_a_page_once(instance: Path) -> None:
    page = Page(new_link())
    reply = page.log_in()
    assert reply.status == 200
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith(f"holdfast-{reply.value['instance']}=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert not reply.value["read_only"] and reply.value["secret"] not in cookie
    session = page.ask("GET", SESSION)
    assert session.status == 200 and session.value["instance"] == reply.value["instance"]
    assert session.value["home"] == str(instance)
    assert page.ask("GET", "/api/v1/processes").value["processes"] == []
    again = Page(f"{page.url}/#key={page.key}").log_in()
    assert (again.status, again.code) == (401, "denied")
    assert "holdfast dashboard" in again.value["next"]


def test_cookie_and_secret_are_both_needed(page: Page) -> None:
    assert page.cookie is not None and page.secret is not None
    other = open_page()
    name = page.cookie.partition("=")[0]
    for proof in (
        {},
        {"Cookie": page.cookie},
        {"Holdfast-Secret": page.secret},
        {"Cookie": page.cookie, "Holdfast-Secret": "x"},
        {"Cookie": f"{name}=x", "Holdfast-Secret": page.secret},
        {"Cookie": f"{name}={page.secret}", "Holdfast-Secret": page.secret},
        {"Cookie": f"other={page.cookie.partition('=')[2]}", "Holdfast-Secret": page.secret},
        {"Cookie": page.cookie, "Holdfast-Secret": other.secret or ""},
        {"Cookie": page.cookie, "Authorization": f"Bearer {page.secret}"},
    ):
        for path in (SESSION, "/api/v1/processes", "/metrics", "/nowhere"):
            refused = send(page.host, "GET", path, headers=proof)
            assert (refused.status, refused.code) == (401, "denied"), (path, proof)
            assert page.secret not in refused.body.decode()
    assert page.ask("GET", SESSION).status == 200


def test_a_cookie_that_another_server_set_beside_ours_does_no_harm(page: Page) -> None:
    assert page.cookie is not None and page.secret is not None
    name = page.cookie.partition("=")[0]
    sent = {"Cookie": f"{name}=planted; a=b; {page.cookie}; c", "Holdfast-Secret": page.secret}
    assert send(page.host, "GET", SESSION, headers=sent).status == 200


def test_tabs_of_one_browser_share_the_cookie(page: Page) -> None:
    second = Page(new_link())
    second.cookie = page.cookie  # the browser sends what it has
    assert second.log_in().status == 200
    assert second.cookie == page.cookie and second.secret != page.secret
    for tab in (page, second):
        assert tab.ask("GET", SESSION).status == 200
    left = second.ask("POST", "/api/v1/dashboard/logout")
    assert left.status == 204 and "set-cookie" not in left.headers
    assert second.ask("GET", SESSION).status == 401
    assert page.ask("GET", SESSION).status == 200


def test_a_page_that_leaves_takes_its_cookie_along(instance: Path) -> None:
    page = open_page()
    left = page.ask("POST", "/api/v1/dashboard/logout")
    assert left.status == 204 and "Max-Age=0" in left.headers["set-cookie"]
    assert page.ask("GET", SESSION).status == 401


def test_the_websockets_of_a_page_end_with_it(instance: Path, page: Page) -> None:
    leaving = open_page()
    with leaving.socket("/api/v1/events") as ws, page.socket("/api/v1/events") as other:
        for one in (ws, other):
            assert json.loads(one.recv(timeout=60))["type"] == "hello"
        assert leaving.ask("POST", "/api/v1/dashboard/logout").status == 204
        with pytest.raises(ConnectionClosed):
            ws.recv(timeout=60)
        with pytest.raises(TimeoutError):
            other.recv(timeout=0.2)


def test_wrong_keys(page: Page) -> None:
    login = "/api/v1/dashboard/login"
    for body in (
        {"key": "x"},
        {"key": ""},
        {"key": "é" * 99},
    ):
        assert send(page.host, "POST", login, body).status == 401, body
    for bad in ({}, {"key": 1}, {"key": None}, {"key": "\ud800"}, {"key": "x" * 300}, {"key": "x", "more": 1}):
        assert send(page.host, "POST", login, bad).status == 400, bad
    assert send(page.host, "POST", login, b"key=x").status == 415
    assert send(page.host, "POST", login, b"key=x", {"Content-Type": "text/plain"}).status == 415
    assert send(page.host, "POST", login, b"x" * 200_000, {"Content-Type": "application/json"}).status == 413
    assert send(page.host, "GET", login).value == {"password": False}


def test_a_key_of_another_instance_opens_nothing(page: Page, tmp_path: Path, home: Path) -> None:
    other = Page(new_link())  # of `home`
    assert other.host != page.host
    other.host, other.url = page.host, page.url
    assert other.log_in().status == 401


def test_requests_from_elsewhere_are_refused(page: Page) -> None:
    """Cross-origin, DNS rebinding, and what browsers send without Origin; with all that a page has, and on login."""
    start = ("POST", "/api/v1/processes", {"command": "true"})
    login = ("POST", "/api/v1/dashboard/login", {"key": "x"})
    for hostile in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": page.url.replace("http:", "https:")},
        {"Origin": "http://127.0.0.1:1"},
        {"Host": "evil.example"},
        {"Host": f"evil.example:{page.host.rpartition(':')[2]}", "Origin": "http://evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        for method, path, body in (start, login):
            refused = page.ask(method, path, body, hostile)
            assert (refused.status, refused.code) == (403, "denied"), hostile
            assert not [name for name in refused.headers if name.startswith("access-control")]
    assert page.ask("GET", "/api/v1/processes?all=true").value["processes"] == []
    for hostile in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        assert send(page.host, "GET", "/", headers={"Accept": "text/html", **hostile}).status == 403


def test_websockets_need_both_and_the_same_origin(page: Page) -> None:
    with page.socket("/api/v1/events") as ws:
        assert json.loads(ws.recv(timeout=60))["type"] == "hello"
        assert ws.subprotocol == "holdfast.v1"
    for changes, status in (
        ({"additional_headers": {}}, 401),
        ({"subprotocols": ["holdfast.v1"]}, 401),
        ({"subprotocols": ["holdfast.v1", "holdfast.secret.x"]}, 401),
        ({"origin": "http://evil.example"}, 403),
        ({"additional_headers": {"Cookie": page.cookie, "Sec-Fetch-Site": "cross-site"}}, 403),
    ):
        options: dict[str, Any] = changes
        with pytest.raises(InvalidStatus) as refused:
            page.socket("/api/v1/events", **options)
        assert refused.value.response.status_code == status, changes


def test_headers_that_are_huge_or_hostile(page: Page) -> None:
    assert page.cookie is not None and page.secret is not None
    assert page.ask("GET", SESSION, headers={"X": "x" * 70_000}).status == 431
    many = "; ".join([f"{page.cookie.partition('=')[0]}={n}" for n in range(2000)])
    assert page.ask("GET", SESSION, headers={"Cookie": many}).status == 401
    for cookie in ("", "=", ";;;", "a" * 5000, "\xff\xfe", f"{page.cookie}\t; \xe9"):
        assert page.ask("GET", SESSION, headers={"Cookie": cookie}).status in (200, 400, 401)
    for secret in ("", "\xff", "x" * 5000, "' OR 1=1"):
        assert page.ask("GET", SESSION, headers={"Holdfast-Secret": secret}).status == 401
    assert page.ask("GET", SESSION).status == 200


def test_pages_links_and_the_port_survive_a_killed_daemon(home: Path) -> None:
    page, unused = open_page(), Page(new_link())
    file = home / "dashboard-access.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = file.read_text()
    for secret in (page.secret, page.cookie, page.key, unused.key):
        assert secret is not None and secret.rpartition("=")[2] not in kept
    kill_daemon()
    with holdfast.connect() as client:
        eventually(lambda: client.http()["url"])
    assert page.ask("GET", SESSION).status == 200
    assert unused.url == page.url and unused.log_in().status == 200
    assert Page(f"{page.url}/#key={page.key}").log_in().status == 401


def test_keys_and_pages_end_with_their_time(home: Path) -> None:
    page, unused = open_page(), Page(new_link())
    file = home / "dashboard-access.json"
    with holdfast.connect() as client:
        client.stop_daemon()
    eventually(lambda: not (home / "daemon.sock").exists())
    kept = json.loads(file.read_text())
    for one in (*kept["keys"], *kept["sessions"]):
        one["until"] = 1.0
    file.write_text(json.dumps(kept))
    with holdfast.connect() as client:
        eventually(lambda: client.http()["url"])
    assert unused.log_in().status == 401
    assert page.ask("GET", SESSION).status == 401


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"instance": "../../x", "keys": [], "sessions": []}', '{"instance": 1}']
)
def test_a_file_that_cannot_be_read_ends_pages_and_nothing_else(home: Path, content: str) -> None:
    home.mkdir(mode=0o700)
    (home / "dashboard-access.json").write_text(content)
    (home / "dashboard-access.json").chmod(0o600)
    assert open_page().ask("GET", SESSION).status == 200


def test_stop_ends_all_pages_and_closes_the_port(home: Path) -> None:
    page, unused = open_page(), Page(new_link())
    stopped = run_cli("dashboard", "--stop")
    assert stopped.returncode == 0 and b"closed" in stopped.stderr
    with pytest.raises(ConnectionError):
        page.ask("GET", SESSION)
    again = Page(new_link("--port", page.host.rpartition(":")[2]))
    assert again.url == page.url
    assert page.ask("GET", SESSION).status == 401 and unused.log_in().status == 401


def test_no_secret_is_logged(home: Path) -> None:
    page = open_page()
    page.ask("GET", f"/api/v1/processes/{page.secret}?x={page.secret}")
    send(page.host, "GET", f"/?key={page.key}", headers={"Accept": "text/html"})
    assert page.ask("GET", SESSION).status == 200
    text = (home / "daemon.log").read_text()
    assert page.cookie is not None and page.secret is not None
    for secret in (page.secret, page.key, page.cookie.partition("=")[2], (home / "token").read_text().strip()):
        assert secret not in text


def test_a_read_only_page_can_only_look(instance: Path) -> None:
    page, full = open_page("--read-only"), open_page()
    assert page.ask("GET", SESSION).value["read_only"] is True
    started = full.ask("POST", "/api/v1/processes", {"command": "cat", "pty": True, "name": "seen"}).value
    at = f"/api/v1/processes/{started['id']}"
    for path in (
        "/api/v1/processes",
        at,
        f"{at}/log",
        f"{at}/screen",
        f"{at}/why",
        "/api/v1/sessions",
        "/api/v1/approvals",
        "/api/v1/events",
        "/api/v1/top",
        "/api/v1/daemon",
        "/api/v1/queues",
        "/api/v1/sessions/default/inbox",
    ):
        assert page.ask("GET", path).status == 200, path
    for method, path, body in (
        ("POST", "/api/v1/processes", {"command": "true"}),
        ("POST", f"{at}/kill", {}),
        ("POST", "/api/v1/kill", {"all": True}),
        ("POST", f"{at}/stdin", {"text": "x"}),
        ("POST", f"{at}/resize", {"cols": 10, "rows": 10}),
        ("POST", f"{at}/restart", {}),
        ("POST", f"{at}/exec", {"command": "true"}),
        ("POST", f"{at}/transfer", {"to": "x"}),
        ("DELETE", at, None),
        ("POST", "/api/v1/events", {"topic": "a.b"}),
        ("POST", "/api/v1/daemon/stop", {}),
        ("POST", "/api/v1/ack", {"ids": []}),
        ("POST", "/mcp", {}),
        ("GET", "/api/v1/files?place=local&path=/etc/passwd", None),
        ("GET", "/api/v1/sessions/default/inbox?take=true", None),
    ):
        refused = page.ask(method, path, body)
        assert (refused.status, refused.code) == (403, "denied"), path
        assert "only look" in refused.value["detail"]
    assert page.ask("GET", at, headers={"Holdfast-Session": "default"}).status == 403
    with pytest.raises(InvalidStatus):
        page.socket("/api/pub")
    with page.socket(f"{at}/attach?from=0") as ws:
        assert json.loads(bytes(ws.recv(timeout=60))[1:])["type"] == "hello"  # type: ignore[arg-type]
        ws.send(b"\0typed\r")
        refusal = json.loads(bytes(ws.recv(timeout=60))[1:])  # type: ignore[arg-type]
        assert (refusal["type"], refusal["code"]) == ("error", "denied")
    assert full.ask("GET", f"{at}/log").value["text"] == ""
    full.ask("POST", f"{at}/kill", {"grace": 0.1})


def test_what_a_read_only_page_may_use_is_declared() -> None:
    """A new operation is not among them unless it says so."""
    routes = {name: one.traits for name, one in OPERATIONS.items() if one.traits.route}
    reading = {name for name, traits in routes.items() if traits.reads}
    getting = {name for name, traits in routes.items() if traits.route.startswith("GET ")}
    assert getting - reading == {"get_file", "backend_login"}
    assert reading - getting == {"wait", "glance", "judge", "redact"}


def test_the_token_goes_on_working(instance: Path, page: Page) -> None:
    token = (instance / "token").read_text().strip()
    reply = send(page.host, "GET", SESSION, headers={"Authorization": f"Bearer {token}"})
    assert reply.status == 200 and reply.value["read_only"] is False
    assert (
        send(page.host, "POST", "/api/v1/dashboard/logout", headers={"Authorization": f"Bearer {token}"}).status == 204
    )


def test_a_held_command_makes_no_link(home: Path) -> None:
    """It would get around the session that it is bound to."""
    with holdfast.connect() as client:
        process = client.run([sys.executable, "-m", "holdfast", "dashboard", "--print"])
        assert client.wait(process.id, timeout=30).exit_code not in (0, None)
        assert "#key=" not in client.logs(process.id).text


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_another_user_who_saw_the_link_does_not_get_in(instance: Path) -> None:
    """It stands among the arguments of the browser, which every user can read."""
    page = Page(new_link())
    body = json.dumps({"key": page.key})
    head = f"POST /api/v1/dashboard/login HTTP/1.1\r\nHost: {page.host}\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}"
    host, port = page.host.split(":")
    program = f"""
import os, socket
os.setgid(65534); os.setuid(65534)
connection = socket.socket()
connection.connect(({host!r}, {port}))
connection.sendall({request.encode()!r})
answer = b""
while data := connection.recv(65536):
    answer += data
os.write(1, answer)
"""
    seen = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert seen.stdout.startswith("HTTP/1.1 403 ") and "another user" in seen.stdout
    assert page.log_in().status == 200
