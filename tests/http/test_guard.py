"""Which clients are accepted: the rules, and the listener that applies them."""

from __future__ import annotations

import socket
import stat
import time
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import BadValue
from holdfast.http.guard import check, host_is_loopback, same_origin
from holdfast.http.responses import HttpRefusal
from holdfast.model.addresses import Address, is_loopback, parse_address
from tests.http.asking import Api
from tests.support import eventually, free_port, run_cli

TOKEN = "t" * 32


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:8080", "[::1]:9", "127.9.9.9"])
def test_hosts_that_are_this_machine(host: str) -> None:
    assert host_is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        *("", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "127.0.0.1@evil.example", "0.0.0.0"),
        *(
            "[::1",
            "[::1]x",
            "[::2]:1",
            "127.0.0.1:x",
            "127.1",
            "2130706433",
            "127.0.0.1:80:80",
            "127.0.0.256",
            "１27.0.0.1",
        ),
    ],
)
def test_hosts_that_are_not(host: str) -> None:
    assert not host_is_loopback(host)


def test_origins() -> None:
    assert same_origin("http://127.0.0.1:80", "127.0.0.1:80")
    for origin in ("null", "http://127.0.0.1:81", "https://127.0.0.1:80", "http://evil.example", "", "file://"):
        assert not same_origin(origin, "127.0.0.1:80")
    assert not same_origin("http://x", None)


def test_headers_that_are_sent_twice_are_refused() -> None:
    for name in ("host", "origin", "authorization"):
        headers = {"host": ["localhost"], "authorization": [f"Bearer {TOKEN}"], name: ["localhost", "localhost"]}
        with pytest.raises(HttpRefusal) as refused:
            check(headers, "/x", TOKEN)
        assert refused.value.status in (400, 403)


def test_a_token_in_a_subprotocol_or_a_header() -> None:
    check({"host": ["localhost"]}, "/x", TOKEN, ["holdfast.v1", f"holdfast.token.{TOKEN}"])
    check({"host": ["localhost"], "authorization": [f"bearer {TOKEN}"]}, "/x", TOKEN)
    for wrong in (f"Basic {TOKEN}", "Bearer", "Bearer x", f"Bearer {TOKEN}x", TOKEN, "Bearer é"):
        with pytest.raises(HttpRefusal):
            check({"host": ["localhost"], "authorization": [wrong]}, "/x", TOKEN)
    with pytest.raises(HttpRefusal):
        check({"host": ["localhost"], "authorization": ["Bearer "]}, "/x", "")


def test_addresses() -> None:
    assert parse_address("localhost:80") == Address("127.0.0.1", 80)
    assert str(parse_address("[::1]:80")) == "[::1]:80"
    assert is_loopback("127.255.0.1")
    for bad in (
        "0.0.0.0:80",
        "192.168.1.1:80",
        "example.org:80",
        "127.0.0.1",
        "127.0.0.1:99999",
        ":80",
        "[::]:80",
        "::1:x",
    ):
        with pytest.raises(BadValue):
            parse_address(bad)


def test_on_tcp_a_token_is_needed_for_everything_but_livez(tcp: Api) -> None:
    assert tcp.ask("GET", "/livez", token="").status in (200,)
    for method, path in (
        ("GET", "/api/v1/processes"),
        ("GET", "/readyz"),
        ("GET", "/nowhere"),
        ("OPTIONS", "/metrics"),
    ):
        refused = tcp.ask(method, path, headers={"Authorization": "Bearer wrong"})
        assert (refused.status, refused.code) == (401, "denied")
        assert refused.headers["www-authenticate"].startswith("Bearer")
        assert tcp.token is not None and tcp.token not in refused.body.decode()
    assert tcp.ask("GET", "/readyz").status == 200


def test_a_page_whose_name_resolves_here_is_refused(tcp: Api) -> None:
    for host in ("evil.example", "evil.example:80", "127.0.0.1.nip.example"):
        refused = tcp.ask("GET", "/api/v1/processes", headers={"Host": host})
        assert (refused.status, refused.code) == (403, "denied")
        assert tcp.ask("GET", "/livez", headers={"Host": host}).status == 403


def test_other_origins_are_refused(api: Api) -> None:
    for origin in ("http://evil.example", "null", "https://localhost"):
        refused = api.ask("POST", "/api/v1/processes", {"command": "true"}, {"Origin": origin})
        assert (refused.status, refused.code) == (403, "denied")
        assert not [name for name in refused.headers if name.startswith("access-control")]
    host = f"{api.address[0]}:{api.address[1]}" if api.address else "localhost"
    assert api.ask("GET", "/readyz", headers={"Origin": f"http://{host}", "Host": host}).status == 200


def test_frames_are_not_spoken_on_tcp(tcp: Api) -> None:
    assert tcp.address is not None
    with socket.create_connection(tcp.address, 10) as sock:
        sock.sendall(b"\0\0\0\2J{}")
        assert b"400" in sock.recv(1000)


def test_the_listener_stays_open_over_a_restart_and_closes_on_request(home: Path) -> None:
    opened = run_cli("daemon", "http", "--json")
    with holdfast.connect() as client:
        url = client.http()["url"]
    assert url.encode() in opened.stdout
    token = home / "token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    before = token.read_text()
    with holdfast.connect() as client:
        client.stop_daemon()
    eventually(lambda: not (home / "daemon.sock").exists())
    with holdfast.connect() as client:
        assert eventually(lambda: client.http()["url"]) == url
    with holdfast.connect(url=url) as client:
        assert client.ps() == []
    assert token.read_text() == before
    assert run_cli("daemon", "http", "--off").returncode == 0
    with pytest.raises(holdfast.Unreachable):
        holdfast.connect(url=url)


def test_the_configuration_opens_it_but_not_to_the_world(home: Path) -> None:
    home.mkdir(mode=0o700)
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        (home / "config.toml").write_text(f'http_listen = "127.0.0.1:{port}"\n')
        with holdfast.connect() as client:
            assert client.http()["url"] is None  # another program is in the way
            with pytest.raises(holdfast.NotNow):
                client.http("open", f"127.0.0.1:{port}")
            with pytest.raises(holdfast.BadValue):
                client.http("open", "0.0.0.0:0")
    with holdfast.connect() as client:
        assert eventually(lambda: client.http()["url"]) == f"http://127.0.0.1:{port}"
        client.stop_daemon()
    eventually(lambda: not (home / "daemon.sock").exists())
    (home / "config.toml").write_text('http_listen = "0.0.0.0:80"\n')
    refused = run_cli("ps")
    assert refused.returncode == 125
    assert b"0.0.0.0" in refused.stderr


def test_wrong_addresses_and_tokens(tcp: Api) -> None:
    for url in ("https://127.0.0.1:1", "127.0.0.1:80", "http://127.0.0.1", "http://u@127.0.0.1:1", "http://x:y"):
        with pytest.raises(holdfast.BadValue):
            holdfast.connect(url=url)
    with pytest.raises(holdfast.Denied):
        holdfast.connect(url=tcp.url, token="wrong")
    with pytest.raises(holdfast.BadValue):
        holdfast.connect(url=tcp.url, token="a\r\nb")
    began = time.monotonic()
    with pytest.raises(holdfast.Unreachable):
        holdfast.connect(url="http://127.0.0.1:1", token="x")
    assert time.monotonic() - began < 20
