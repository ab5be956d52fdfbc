"""Plugins of the dashboard on a real daemon: manifests, files, switches and routers."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

import holdfast
from tests.dashboard.page import Page, kill_daemon, open_page, send
from tests.dashboard.plugin_files import write_plugin
from tests.support import eventually, run_cli

LIST = "/api/v1/dashboard/plugins"


def plugins_of(page: Page) -> dict[str, dict[str, Any]]:
    return {plugin["name"]: plugin for plugin in page.ask("GET", LIST).value["plugins"]}


@pytest.fixture(scope="module")
def page(instance: Path) -> Page:
    return open_page()


def test_a_plugin_that_is_dropped_in_is_listed_and_served_without_a_restart(instance: Path, page: Page) -> None:
    assert "board" not in plugins_of(page)
    tab = {"path": "/board", "position": "after:sessions"}
    about = {"label": "Board", "description": "Cards.", "icon": "Star", "version": "1.2.0"}
    more = {"tab": tab, "slots": ["sessions:top", "header-right"], "css": "a.css"}
    directory = write_plugin(instance, "board", {**about, **more})
    (directory / "a.css").write_text("p { color: red }")
    found = plugins_of(page)["board"]
    assert found["error"] is None and found["enabled"] is True and found["source"] == "user"
    assert found["tab"] == {**tab, "override": None, "hidden": False}
    assert found["slots"] == ["sessions:top", "header-right"]
    assert {key: found[key] for key in about} == about
    script = send(page.host, "GET", "/dashboard-plugins/board/dist/index.js")
    assert script.status == 200 and b"Hello from board" in script.body
    assert script.headers["content-type"].startswith("text/javascript")
    assert script.headers["x-content-type-options"] == "nosniff"
    assert script.headers["cross-origin-resource-policy"] == "same-origin"
    assert send(page.host, "GET", "/dashboard-plugins/board/a.css").headers["content-type"].startswith("text/css")
    known = page.ask("GET", "/api/dashboard/plugins").value
    assert [one["name"] for one in known] == ["board"] and known[0]["tab"] == {**tab, "hidden": False}
    assert page.ask("GET", "/api/dashboard/plugins/rescan").value["ok"] is True
    assert send(page.host, "GET", LIST).status == 401


def test_a_plugin_of_hermes_agent_has_its_manifest_in_a_directory_below(instance: Path, page: Page) -> None:
    directory = write_plugin(instance, "nested")
    below = directory / "dashboard"
    below.mkdir()
    for name in ("manifest.json", "dist"):
        (directory / name).rename(below / name)
    assert plugins_of(page)["nested"]["error"] is None
    assert send(page.host, "GET", "/dashboard-plugins/nested/dist/index.js").status == 200


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        ({"name": "other"}, "same name"),
        ({"name": 7}, "name must be a text"),
        ({"label": "a\x1b[31mb"}, "printable"),
        ({"label": "x" * 1000}, "500"),
        ({"entry": "/etc/passwd"}, "entry must be"),
        ({"entry": "../board/dist/index.js"}, "entry must be"),
        ({"entry": "dist/missing.js"}, "No such file"),
        ({"entry": ["dist/index.js"]}, "entry must be"),
        ({"css": "dist/index.js"}, "css must be"),
        ({"api": "/etc/passwd.py"}, "api must be"),
        ({"api": "../board/api.py"}, "api must be"),
        ({"tab": "x"}, "tab must be"),
        ({"tab": {"path": "board"}}, "tab.path"),
        ({"tab": {"path": "/api/v1/processes"}}, "belongs to the daemon"),
        ({"tab": {"path": "//evil.example"}}, "tab.path"),
        ({"tab": {"path": "/x", "position": "first"}}, "tab.position"),
        ({"tab": {"path": "/x", "hidden": "yes"}}, "tab.hidden"),
        ({"slots": "sidebar"}, "slots"),
        ({"slots": ["<script>"]}, "slots"),
        ({"slots": ["a"] * 1000}, "slots"),
        ({"integrity": "md5-x"}, "integrity"),
        ({"integrity": {"../x": "sha256-" + "A" * 43 + "="}}, "integrity"),
    ],
)
def test_a_manifest_that_is_wrong_is_refused_with_a_sentence(
    instance: Path, page: Page, manifest: dict[str, Any], says: str
) -> None:
    write_plugin(instance, "wrong", manifest)
    found = plugins_of(page)["wrong"]
    assert says in found["error"] and found["enabled"] is False and "\x1b" not in found["error"]
    assert send(page.host, "GET", "/dashboard-plugins/wrong/dist/index.js").status == 404
    refused = page.ask("POST", f"{LIST}/wrong", {"enabled": True})
    assert refused.status == 400 and says in refused.value["detail"]


def test_what_is_no_manifest_is_refused(instance: Path, page: Page) -> None:
    manifest = write_plugin(instance, "odd") / "manifest.json"
    for content in (b"", b"[]", b"{", b"\xff\xfe", b"[" * 60_000, b" " * 100_000):
        manifest.write_bytes(content)
        assert plugins_of(page)["odd"]["error"], content[:10]
    manifest.unlink()
    os.mkfifo(manifest)
    assert "regular file" in plugins_of(page)["odd"]["error"]
    manifest.unlink()
    manifest.symlink_to("/etc/hostname")
    assert "out of the directory" in plugins_of(page)["odd"]["error"]
    (instance / "dashboard" / "plugins" / "a b\n<i>").mkdir()
    broken = [one for name, one in plugins_of(page).items() if name.startswith("a b")]
    assert len(broken) == 1 and "\n" not in broken[0]["name"] and broken[0]["error"]


def test_only_files_of_the_plugin_itself_are_served(instance: Path, page: Page) -> None:
    directory = write_plugin(instance, "files", router="router = {}")
    (directory / "dist" / "out.js").symlink_to("/etc/passwd")
    (directory / "dist" / "in.js").symlink_to("index.js")
    (directory / "etc").symlink_to("/etc")
    (directory / ".secret.js").write_text("x")
    (directory / "dist" / "huge.js").touch()
    os.truncate(directory / "dist" / "huge.js", 17 << 20)
    os.mkfifo(directory / "dist" / "fifo.js")
    for path in (
        *("dist/out.js", "etc/passwd", "etc/hostname.js", ".secret.js", "dist/huge.js", "dist/fifo.js", "dist", ""),
        *(
            "api.py",
            "x.json/",
            "../board/dist/index.js",
            "..%2f..%2f..%2ftoken",
            "dist//index.js",
            "dist/%00.js",
        ),
        *("%2e%2e/token", "dist/index.js/", "\\..\\x.js"),
    ):
        reply = send(page.host, "GET", f"/dashboard-plugins/files/{path}")
        assert (reply.status, reply.code) == (404, "not_found"), path
        assert b"root:" not in reply.body
    assert send(page.host, "GET", "/dashboard-plugins/files/dist/in.js").status == 200
    for path in ("/dashboard-plugins/", "/dashboard-plugins", "/dashboard-plugins/nope/dist/index.js"):
        assert send(page.host, "GET", path, headers={"Accept": "text/html"}).status == 404, path
    assert send(page.host, "GET", "/dashboard-plugins/files/dist/in.js", headers={"Host": "evil.example"}).status == 403


def test_a_file_that_was_changed_is_not_served_where_the_manifest_has_its_hash(instance: Path, page: Page) -> None:
    directory = write_plugin(instance, "hashed")
    script = directory / "dist" / "index.js"
    digest = base64.b64encode(hashlib.sha384(script.read_bytes()).digest()).decode()
    for integrity in (f"sha384-{digest}", {"dist/index.js": f"sha384-{digest}"}):
        write_plugin(instance, "hashed", {"integrity": integrity})
        assert send(page.host, "GET", "/dashboard-plugins/hashed/dist/index.js").status == 200
    script.write_text("alert(1)")
    changed = send(page.host, "GET", "/dashboard-plugins/hashed/dist/index.js")
    assert changed.status == 404 and "integrity" in changed.value["detail"]


def test_a_disabled_plugin_serves_no_file_and_stays_disabled(home: Path) -> None:
    page = open_page()
    write_plugin(home, "board", router="router = {'GET /': lambda request: {'pid': __import__('os').getpid()}}")
    at = "/dashboard-plugins/board/dist/index.js"
    pid = page.ask("GET", "/api/plugins/board/").value["pid"]
    listed = run_cli("dashboard", "plugins", "--disable", "board")
    assert listed.returncode == 0, listed
    assert b"disabled" in next(line for line in listed.stdout.splitlines() if line.startswith(b"board"))
    eventually(lambda: not os.path.exists(f"/proc/{pid}"))
    assert send(page.host, "GET", at).status == 404
    assert page.ask("GET", "/api/plugins/board/").status == 404
    kill_daemon()
    with holdfast.connect() as client:
        eventually(lambda: client.http()["url"])
        assert send(page.host, "GET", at).status == 404
        assert client.set_plugin("board", True)["plugin"]["enabled"] is True
    assert send(page.host, "GET", at).status == 200
    (home / "dashboard" / "plugins.json").write_text("{broken")
    assert plugins_of(page)["board"]["enabled"] is False


def test_the_command_lists_and_switches(instance: Path, page: Page) -> None:
    write_plugin(instance, "listed", {"description": "What it does."})
    write_plugin(instance, "faulty", {"slots": 7})
    shown = run_cli("dashboard", "plugins").stdout.decode()
    assert "What it does." in shown and "slots must be" in shown
    found = {one["name"]: one for one in json.loads(run_cli("dashboard", "plugins", "--json").stdout)}
    assert found["listed"]["enabled"] and found["cockpit"]["source"] == "shipped" and not found["cockpit"]["enabled"]
    for words in (["--enable", "nope"], ["--enable", "../x"], ["--enable", "a", "--disable", "b"], ["--stop"], ["x"]):
        refused = run_cli("dashboard", "plugins", *words)
        assert refused.returncode == 125 and refused.stderr.count(b"\n") == 1, refused
    assert run_cli("dashboard", "--enable", "listed").returncode == 125
    read_only = open_page("--read-only")
    assert read_only.ask("GET", LIST).status == 200
    assert read_only.ask("POST", f"{LIST}/listed", {"enabled": False}).status == 403
    assert read_only.ask("GET", "/api/plugins/listed/").status == 403


ROUTER = """
import os, time, threading
def echo(request):
    return {"method": request.method, "path": request.path, "query": request.query, "body": request.body.decode(),
            "parameters": request.parameters, "secrets": [name for name in request.headers
            if name in ("cookie", "authorization", "holdfast-secret")], "pid": os.getpid()}
async def block(request):
    time.sleep(1000)
router = {
    "GET /echo/{word}": echo, "POST /echo/{word}": echo, "GET /block": block,
    "GET /die": lambda request: os._exit(1), "GET /raise": lambda request: 1 / 0,
    "GET /made": lambda request: (201, {"made": True}), "GET /bytes": lambda request: b"\\0\\1",
}
"""


def test_a_router_serves_below_its_own_path(instance: Path, page: Page) -> None:
    write_plugin(instance, "routed", router=ROUTER)
    at = "/api/plugins/routed"
    reply = page.ask("POST", f"{at}/echo/a%20b?x=1", b"text", {"Content-Type": "text/plain"})
    assert reply.status == 200, reply
    value = reply.value
    assert value.pop("pid") != os.getpid()
    assert value == {
        "method": "POST",
        "path": "/echo/a b",
        "query": {"x": "1"},
        "body": "text",
        "parameters": {"word": "a b"},
        "secrets": [],
    }
    assert page.ask("GET", f"{at}/made").status == 201
    assert page.ask("GET", f"{at}/bytes").body == b"\0\1"
    assert page.ask("GET", f"{at}/nope").status == 404 and page.ask("DELETE", f"{at}/made").status == 405
    failed = page.ask("GET", f"{at}/raise")
    assert failed.status == 500 and "ZeroDivisionError" in failed.value["detail"]
    assert send(page.host, "GET", f"{at}/made").status == 401
    assert send(page.host, "GET", f"{at}/made", headers={"Cookie": page.cookie or ""}).status == 401
    assert page.ask("GET", "/api/plugins/nope/").status == 404 and page.ask("GET", "/api/plugins/").status == 404


def test_a_router_can_be_any_asgi_application_with_the_bus_at_hand(instance: Path, page: Page) -> None:
    api = """
from holdfast.events import publish
EVENTS = ["demo.*"]
async def router(scope, receive, send):
    publish("demo.asked", {"path": scope["path"]})
    await send({"type": "http.response.start", "status": 200, "headers": [(b"set-cookie", b"a=b")]})
    await send({"type": "http.response.body", "body": b"asgi"})
"""
    write_plugin(instance, "asgi", router=api)
    reply = page.ask("GET", "/api/plugins/asgi/x")
    assert reply.body == b"asgi" and "set-cookie" not in reply.headers
    with holdfast.connect() as client:
        eventually(lambda: [event for event in client.events("demo.asked", follow=False) if event["path"] == "/x"])


def test_a_router_that_cannot_be_loaded_says_why_and_its_correction_is_used(instance: Path, page: Page) -> None:
    for api, says in (
        ("import no_such_package", "no_such_package"),
        ("1 / 0", "ZeroDivisionError"),
        ("raise SystemExit", "SystemExit"),
        ("x = 1", "exports no `router`"),
        ("def broken(:", "SyntaxError"),
    ):
        write_plugin(instance, "unloadable", router=api)
        reply = page.ask("GET", "/api/plugins/unloadable/")
        assert reply.status == 503 and says in reply.value["detail"], reply
    write_plugin(instance, "unloadable", router="router = {'GET /': lambda request: 'well'}")
    assert page.ask("GET", "/api/plugins/unloadable/").value == "well"


def test_a_router_that_hangs_or_dies_harms_nothing(home: Path) -> None:
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.toml").write_text("plugin_timeout = 3.0\n")
    page = open_page()
    write_plugin(home, "bad", router=ROUTER)
    write_plugin(home, "good", router=ROUTER)
    at = "/api/plugins/bad"
    first = page.ask("GET", f"{at}/echo/x").value["pid"]
    hung = page.ask("GET", f"{at}/block")
    assert hung.status == 504 and "no answer within 3 s" in hung.value["detail"]
    eventually(lambda: not os.path.exists(f"/proc/{first}"))
    assert page.ask("GET", f"{at}/echo/x").value["pid"] != first
    died = page.ask("GET", f"{at}/die")
    assert died.status == 503 and "died" in died.value["detail"]
    assert page.ask("GET", "/api/plugins/good/echo/x").status == 200
    assert page.ask("GET", "/api/v1/processes").status == 200
    for _ in range(5):
        page.ask("GET", f"{at}/die")
    paused = page.ask("GET", f"{at}/echo/x")
    assert paused.status == 503 and "keeps failing" in paused.value["detail"], paused
    assert page.ask("GET", "/api/plugins/good/echo/x").status == 200


def test_a_router_that_hangs_ends_with_the_daemon(home: Path) -> None:
    page = open_page()
    api = "import os, time\ndef seen(request): return os.getpid()\nasync def block(request): time.sleep(1000)\n"
    write_plugin(home, "stuck", router=api + "router = {'GET /seen': seen, 'GET /block': block}")
    pid = page.ask("GET", "/api/plugins/stuck/seen").value
    os.kill(pid, signal.SIGSTOP)
    with holdfast.connect() as client:
        os.kill(client.status()["pid"], signal.SIGKILL)
    eventually(lambda: not os.path.exists(f"/proc/{pid}"))


SOCKETS = """
import os, time
async def echo(socket):
    await socket.send({"word": socket.parameters["word"], "query": socket.query, "pid": os.getpid(), "secrets": [
        name for name in socket.headers if name in ("cookie", "authorization", "holdfast-secret")]})
    async for message in socket:
        await socket.send(message)
async def fail(socket):
    raise ValueError("no")
async def leave(socket):
    await socket.send("bye")
async def block(socket):
    await socket.send("blocked")
    time.sleep(1000)
async def flood(socket):
    while True:
        await socket.send("x" * 10000)
router = {"WEBSOCKET /echo/{word}": echo, "WEBSOCKET /fail": fail, "WEBSOCKET /leave": leave,
          "WEBSOCKET /block": block, "WEBSOCKET /flood": flood, "WEBSOCKET /die": lambda socket: os._exit(1),
          "GET /pid": lambda request: os.getpid()}
"""


def test_a_router_has_websockets(instance: Path, page: Page) -> None:
    write_plugin(instance, "talks", router=SOCKETS)
    at = "/api/plugins/talks"
    with page.socket(f"{at}/echo/a%20b?x=1") as ws, page.socket(f"{at}/echo/other") as other:
        assert ws.subprotocol == "holdfast.v1"
        said = json.loads(ws.recv(timeout=20))
        assert (said["word"], said["query"], said["secrets"]) == ("a b", {"x": "1"}, [])
        assert json.loads(other.recv(timeout=20))["pid"] == said["pid"] != os.getpid()
        for message in ("text", b"\0\1", "", "é" * 100_000):
            ws.send(message)
            assert ws.recv(timeout=20) == message
        assert page.ask("GET", f"{at}/pid").value == said["pid"]
    for path, code, said in (("leave", 1000, ["bye"]), ("fail", 1011, [])):
        with page.socket(f"{at}/{path}") as ws:
            assert [ws.recv(timeout=20) for _ in said] == said
            with pytest.raises(ConnectionClosed) as closed:
                ws.recv(timeout=20)
        assert closed.value.rcvd is not None and closed.value.rcvd.code == code, path


def test_websockets_of_a_router_need_what_its_requests_need(instance: Path, page: Page) -> None:
    write_plugin(instance, "talks", router=SOCKETS)
    write_plugin(instance, "mute", router="x = 1")
    at = "/api/plugins/talks/echo/x"
    options: list[tuple[str, dict[str, Any], int]] = [
        (at, {"additional_headers": {}}, 401),
        (at, {"subprotocols": ["holdfast.v1"]}, 401),
        (at, {"origin": "http://evil.example"}, 403),
        ("/api/plugins/talks/nope", {}, 403),
        ("/api/plugins/talks/pid", {}, 403),
        ("/api/plugins/mute/echo/x", {}, 403),
        ("/api/plugins/nope/echo/x", {}, 404),
    ]
    for path, changes, status in options:
        with pytest.raises(InvalidStatus) as refused:
            page.socket(path, **changes)
        assert refused.value.response.status_code == status, path
    with pytest.raises(InvalidStatus) as refused:
        open_page("--read-only").socket(at)
    assert refused.value.response.status_code == 403
    leaving = open_page()
    with leaving.socket(at) as ws:
        ws.recv(timeout=20)
        assert leaving.ask("POST", "/api/v1/dashboard/logout").status == 204
        with pytest.raises(ConnectionClosed):
            ws.recv(timeout=20)


@pytest.mark.full
def test_a_websocket_that_hangs_floods_or_dies_harms_nothing(home: Path) -> None:
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.toml").write_text("plugin_timeout = 2.0\n")
    page = open_page()
    write_plugin(home, "bad", router=SOCKETS)
    write_plugin(home, "good", router=SOCKETS)
    with page.socket("/api/plugins/good/echo/x") as good, page.socket("/api/plugins/bad/flood"):
        good.recv(timeout=20)  # of the other, nothing is read
        with holdfast.connect() as client:
            daemon = client.status()["pid"]
        pid = page.ask("GET", "/api/plugins/bad/pid").value
        with page.socket("/api/plugins/bad/block") as ws:
            assert ws.recv(timeout=20) == "blocked"
            with pytest.raises(ConnectionClosed):
                ws.recv(timeout=20)
        eventually(lambda: not os.path.exists(f"/proc/{pid}"))
        with page.socket("/api/plugins/bad/echo/x") as again:
            assert json.loads(again.recv(timeout=20))["pid"] != pid
            with page.socket("/api/plugins/bad/die") as ws, pytest.raises(ConnectionClosed):
                ws.recv(timeout=20)
            with pytest.raises(ConnectionClosed):
                again.recv(timeout=20)
        good.send("still here")
        assert good.recv(timeout=20) == "still here"
        with open(f"/proc/{daemon}/statm") as file:
            assert int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") < 300 << 20
        with holdfast.connect() as client:
            client.set_plugin("good", False)
        with pytest.raises(ConnectionClosed):
            good.recv(timeout=20)
