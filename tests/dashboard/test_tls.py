"""The dashboard for other machines: with TLS, or not at all."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

import holdfast
from tests.dashboard.page import kill_daemon
from tests.http.asking import Reply
from tests.support import eventually, free_port, run_cli


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    directory = tmp_path_factory.mktemp("certificate")
    files = directory / "cert.pem", directory / "key.pem"
    names = "subjectAltName=DNS:dash.example,DNS:*.wild.example,IP:127.0.0.1"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=dash.example"]
    command += ["-addext", names, "-out", str(files[0]), "-keyout", str(files[1])]
    subprocess.run(command, check=True, capture_output=True)
    return files


def listen(certificate: tuple[Path, Path], *more: str, address: str = "0.0.0.0") -> Any:
    port = free_port()
    opened = run_cli(
        *("dashboard", "--json", "--listen", f"{address}:{port}"),
        *("--cert", str(certificate[0]), "--key", str(certificate[1]), *more),
    )
    assert opened.returncode == 0, opened
    return json.loads(opened.stdout)


def ask(reply: Any, certificate: Path, method: str, path: str, body: object = None, **headers: str) -> Reply:
    """Over TLS, with the certificate checked."""
    port = int(reply["url"].rpartition(":")[2])
    context = ssl.create_default_context(cafile=str(certificate))
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
    data = json.dumps(body).encode() if body is not None else None
    sent = {"Host": f"dash.example:{port}", **({"Content-Type": "application/json"} if data else {})}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, data, sent)
        response = connection.getresponse()
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
    finally:
        connection.close()


def test_without_a_certificate_it_is_refused(home: Path, certificate: tuple[Path, Path], tmp_path: Path) -> None:
    cert, key = map(str, certificate)
    empty = tmp_path / "empty"
    empty.touch()
    for options in (
        ["--listen", "0.0.0.0:0"],
        ["--listen", "0.0.0.0:0", "--cert", cert],
        ["--listen", "127.0.0.1:0", "--key", key],
        ["--listen", "0.0.0.0:0", "--cert", cert, "--key", cert],
        ["--listen", "0.0.0.0:0", "--cert", str(empty), "--key", key],
        ["--listen", "0.0.0.0:0", "--cert", "/nonexistent", "--key", "/nonexistent"],
        ["--listen", "evil.example:80", "--cert", cert, "--key", key],
        ["--listen", "0.0.0.0", "--cert", cert, "--key", key],
        ["--listen", "0.0.0.0:99999", "--cert", cert, "--key", key],
        ["--cert", cert, "--key", key],
        ["--port", "0"],
        ["--port", "70000"],
        ["--stop", "--print"],
        ["--print-token", "--read-only"],
    ):
        refused = run_cli("dashboard", "--print", *options)
        assert refused.returncode in (2, 125) and refused.stdout == b"", options
        assert b"Traceback" not in refused.stderr and refused.stderr.count(b"\n") <= 2, refused.stderr
    with holdfast.connect() as client:
        assert client.http()["url"] is None


def test_pages_over_tls(home: Path, certificate: tuple[Path, Path]) -> None:
    opened = listen(certificate)
    cert = certificate[0]
    assert opened["url"].startswith("https://dash.example:")
    origin = opened["url"]
    key = opened["link"].partition("#key=")[2]
    login = ask(opened, cert, "POST", "/api/v1/dashboard/login", {"key": key}, Origin=origin)
    assert login.status == 200 and "; Secure" in login.headers["set-cookie"]
    proof = {"Cookie": login.headers["set-cookie"].partition(";")[0], "Holdfast_Secret": login.value["secret"]}
    at = "/api/v1/dashboard/session"
    assert ask(opened, cert, "GET", at, Origin=origin, **proof).status == 200
    assert ask(opened, cert, "GET", at).status == 401
    port = origin.rpartition(":")[2]
    for host, status in (
        ("a.wild.example", 200),
        ("127.0.0.1", 200),
        (f"192.0.2.7:{port}", 200),
        (f"[2001:db8::1]:{port}", 200),
        ("evil.example", 403),
        ("wild.example", 403),
        ("a.b.wild.example", 403),
        ("dash.example.evil.example", 403),
    ):
        assert ask(opened, cert, "GET", at, Host=host, **proof).status == status, host
    for hostile in (origin.replace("https", "http"), "https://evil.example", "null"):
        assert ask(opened, cert, "GET", at, Origin=hostile, **proof).status == 403
    with socket.create_connection(("127.0.0.1", int(port)), 10) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b"HTTP/1.1 200" not in plain.recv(1000)
    kill_daemon()
    eventually(lambda: _is_open(int(port)))
    assert ask(opened, cert, "GET", at, Origin=origin, **proof).status == 200
    assert run_cli("dashboard", "--stop").returncode == 0
    assert not _is_open(int(port))
    assert not (home / "https-listen.json").exists()


def _is_open(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0
