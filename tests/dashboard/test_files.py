"""The page and its files, as a browser gets them; and that nothing else of the machine is among them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.dashboard.page import Page, new_link, send
from tests.support import run_cli

HTML = {"Accept": "text/html,application/xhtml+xml"}
INDEX = '<!doctype html><title>x</title><script type="module" src="/assets/index-1a2b.js"></script>'
SCRIPT = "console.log('é')\n" * 200


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small bundle."""
    static = tmp_path_factory.mktemp("bundle")
    (static / "assets").mkdir()
    (static / "index.html").write_text(INDEX)
    (static / "favicon.svg").write_text("<svg/>")
    (static / "assets" / "index-1a2b.js").write_text(SCRIPT)
    (static / "assets" / ".hidden").write_text("hidden")
    return static


@pytest.fixture(scope="module")
def host(bundle: Path, instance: Path) -> str:
    instance.mkdir(mode=0o700)
    (instance / "config.toml").write_text(f'dashboard_files = "{bundle}"\n')
    return Page(new_link()).host


@pytest.mark.parametrize(
    "path", ["/", "/processes", "/processes/proc_0123456789ab", "/events", "/a/plugin/s/tab", "/%2e%2e"]
)
def test_every_path_of_the_page_shows_it(host: str, path: str) -> None:
    reply = send(host, "GET", path, headers=HTML)
    assert (reply.status, reply.body.decode()) == (200, INDEX)
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert reply.headers["cache-control"] == "no-cache"
    assert "set-cookie" not in reply.headers


def test_the_page_may_load_nothing_from_elsewhere(host: str) -> None:
    headers = send(host, "GET", "/", headers=HTML).headers
    policy = dict(part.partition(" ")[::2] for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'" and policy["script-src"] == "'self'"
    assert (
        policy["connect-src"] == "'self'" and policy["frame-ancestors"] == "'none'" and policy["base-uri"] == "'none'"
    )
    assert "unsafe" not in policy["script-src"]
    assert (headers["x-frame-options"], headers["referrer-policy"]) == ("DENY", "no-referrer")
    assert headers["cross-origin-resource-policy"] == headers["cross-origin-opener-policy"] == "same-origin"
    script = send(host, "GET", "/assets/index-1a2b.js").headers
    assert script["content-security-policy"] == headers["content-security-policy"]
    problem = send(host, "GET", "/api/v1/processes").headers
    assert "default-src 'none'" in problem["content-security-policy"]
    assert problem["x-content-type-options"] == "nosniff"


def test_files_are_kept_for_ever_and_packed(host: str, bundle: Path) -> None:
    plain = send(host, "GET", "/assets/index-1a2b.js")
    assert plain.body.decode() == SCRIPT and "immutable" in plain.headers["cache-control"]
    assert plain.headers["content-type"] == "text/javascript; charset=utf-8"
    packed = send(host, "GET", "/assets/index-1a2b.js", headers={"Accept-Encoding": "gzip, br"})
    assert packed.headers["content-encoding"] == "gzip" and gzip.decompress(packed.body).decode() == SCRIPT
    assert len(packed.body) < len(plain.body) / 4
    assert send(host, "HEAD", "/assets/index-1a2b.js").body == b""
    assert send(host, "GET", "/favicon.svg").headers["content-type"] == "image/svg+xml"
    (bundle / "assets" / "index-1a2b.js").write_text("new")
    again = send(host, "GET", "/assets/index-1a2b.js", headers={"Accept-Encoding": "gzip"})
    assert gzip.decompress(again.body) == b"new"
    (bundle / "assets" / "index-1a2b.js").write_text(SCRIPT)


@pytest.mark.parametrize(
    "path",
    [
        *("/assets/../../__init__.py", "/assets/..%2f..%2f__init__.py", "/assets/%2e%2e/%2e%2e/__init__.py"),
        *("/assets/..\\..\\__init__.py", "/assets//etc/passwd", "/assets/%00", "/assets/.hidden", "/assets/..;/x"),
        *("/assets/%252e%252e/x", "/assets/", "/assets/missing.js", "/assets/index-1a2b.js/", "/assets/" + "a" * 5000),
        *(
            "/assets/....//....//etc/passwd",
            "/assets/index-1a2b.js%00.css",
            "/assets/%c0%ae%c0%ae/x",
        ),
    ],
)
def test_nothing_outside_the_bundle_is_served(host: str, path: str) -> None:
    for accepted in ({}, HTML):
        reply = send(host, "GET", path, headers=accepted)
        assert reply.status in (401, 404), path
        assert b"__future__" not in reply.body and b"root:" not in reply.body and b"hidden" not in reply.body


def test_what_is_no_page_needs_a_token_as_before(host: str) -> None:
    for path in ("/api/v1/processes", "/api", "/api/", "/mcp", "/metrics", "/readyz", "/api/plugins/x/"):
        assert send(host, "GET", path, headers=HTML).status == 401, path
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert send(host, method, "/", headers=HTML).status == 401
    assert send(host, "GET", "/processes", headers={"Accept": "application/json"}).status == 401
    assert send(host, "GET", "/livez").status == 200


def test_without_the_bundle_both_say_what_to_do(home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('dashboard_files = "/nonexistent"\n')
    host = Page(new_link()).host
    reply = send(host, "GET", "/", headers=HTML)
    assert reply.status == 200 and b"scripts/setup" in reply.body
    assert "script-src 'self'" in reply.headers["content-security-policy"]
    printed = run_cli("dashboard", "--print")
    assert printed.returncode == 0 and printed.stdout.startswith(b"http://127.0.0.1:")
    assert b"scripts/setup" in printed.stderr and printed.stdout.count(b"\n") == 1
