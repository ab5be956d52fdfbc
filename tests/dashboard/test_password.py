"""Logging in with a password: how it is set, what a wrong one does, and how many can be tried."""

from __future__ import annotations

import asyncio
import stat
import sys
import time
from pathlib import Path

import pytest

import holdfast
from holdfast.daemon.listener.page_access import PageAccess, PasswordAttempts, TooManyAttempts
from holdfast.errors import BadValue, Denied
from holdfast.http import guard
from tests.cli.calling import Terminal
from tests.dashboard.page import Page, kill_daemon, new_link, open_page, send
from tests.http.asking import Reply
from tests.support import eventually, read_only, run_cli

LOGIN, SESSION = "/api/v1/dashboard/login", "/api/v1/dashboard/session"
GOOD = "correct horse ü battery"


def set_password(first: str, second: str | None = None) -> tuple[str, int]:
    """What the command shows, and its exit code; `second`: what is typed when it asks again."""
    with Terminal("dashboard", "--set-password") as terminal:
        terminal.see("new password")
        terminal.type(f"{first}\n".encode())
        if first:
            terminal.see("again")
            terminal.type(f"{first if second is None else second}\n".encode())
        shown = terminal.rest()
        return shown, terminal.end()


def try_password(page: Page, password: object) -> Reply:
    return send(page.host, "POST", LOGIN, {"password": password}, {"Origin": page.url})


def log_in(link: str, password: str) -> Page:
    page = Page(link)
    reply = try_password(page, password)
    assert reply.status == 200, reply
    page.secret, page.cookie = reply.value["secret"], reply.headers["set-cookie"].partition(";")[0]
    return page


def test_a_password_opens_a_page_as_a_link_does(home: Path) -> None:
    link = new_link()
    page = Page(link)
    assert send(page.host, "GET", LOGIN).value == {"password": False}
    refused = try_password(page, GOOD)
    assert refused.status == 401 and "no password" in refused.value["detail"]
    shown, code = set_password(GOOD)
    assert code == 0 and "is set" in shown and GOOD not in shown
    assert send(page.host, "GET", LOGIN).value == {"password": True}
    opened = log_in(link, GOOD)
    found = opened.ask("GET", SESSION)
    assert found.status == 200 and found.value["read_only"] is False
    # As another keyboard composes the same character.
    assert try_password(page, GOOD.replace("ü", "u\u0308")).status == 200
    file = home / "dashboard-access.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert GOOD not in file.read_text() and GOOD not in (home / "daemon.log").read_text()
    kill_daemon()
    with holdfast.connect() as client:
        eventually(lambda: client.http()["url"])
    assert opened.ask("GET", SESSION).status == 200
    assert log_in(link, GOOD).ask("GET", SESSION).status == 200


def test_wrong_passwords_are_refused_and_the_sixth_has_to_wait(home: Path) -> None:
    page = Page(new_link())
    set_password(GOOD)
    for wrong in ("wrong password", GOOD[:-1], "", GOOD.upper(), "x" * 256):
        refused = try_password(page, wrong)
        assert (refused.status, refused.code) == (401, "denied"), wrong
        assert "set-cookie" not in refused.headers
    late = try_password(page, GOOD)
    assert late.status == 429 and int(late.headers["retry-after"]) >= 1
    assert page.log_in().status == 200  # a link works all the same
    eventually(lambda: try_password(page, GOOD).status == 200, pause=0.5)
    assert try_password(page, "wrong password").status == 401  # the count begins again
    for bad in ({}, {"password": 1}, {"password": None}, {"password": "x" * 300}, {"password": GOOD, "key": "x"}):
        assert send(page.host, "POST", LOGIN, bad).status == 400, bad
    hostile = send(page.host, "POST", LOGIN, {"password": GOOD}, {"Origin": "http://evil.example"})
    assert hostile.status == 403


def test_another_password_ends_the_pages_of_the_old_one(home: Path) -> None:
    set_password(GOOD)
    by_link = open_page()
    link = new_link()
    old = log_in(link, GOOD)
    assert set_password("another password")[1] == 0
    assert old.ask("GET", SESSION).status == 401 and by_link.ask("GET", SESSION).status == 200
    assert try_password(old, GOOD).status == 401
    new = log_in(link, "another password")
    shown, code = set_password("")
    assert code == 0 and "no password" in shown
    assert new.ask("GET", SESSION).status == 401
    assert try_password(new, "another password").status == 401
    assert send(new.host, "GET", LOGIN).value == {"password": False}


def test_what_is_no_password_is_refused(home: Path) -> None:
    page = open_page()
    for first, second, says in (("short", None, "8 characters"), (GOOD, "something else", "differ")):
        shown, code = set_password(first, second)
        assert code == 125 and says in shown and "Traceback" not in shown
    for words in (["--json"], ["--print"], ["--stop"], ["--port", "1"]):
        assert run_cli("dashboard", "--set-password", *words).returncode == 125
    with holdfast.connect() as client:
        for what, password in (("password", None), ("open", GOOD), ("close", GOOD)):
            with pytest.raises(BadValue):
                client.dashboard(what, password=password)
        process = client.run([sys.executable, "-m", "holdfast", "dashboard", "--set-password"], pty=True)
        eventually(lambda: "new password" in client.logs(process.id).text)
        client.send(process.id, GOOD)
        eventually(lambda: "again" in client.logs(process.id).text)  # what is typed before a prompt is thrown away
        client.send(process.id, GOOD)
        assert client.wait(process.id, timeout=30).exit_code not in (0, None)  # it would outlast its session
    assert send(page.host, "GET", LOGIN).value == {"password": False}


def test_a_home_that_cannot_be_written_keeps_the_old_password(home: Path) -> None:
    set_password(GOOD)
    page = Page(new_link())
    with read_only(str(home)):
        shown, code = set_password("another password")
        assert code != 0 and "cannot write" in shown and "Traceback" not in shown
        assert try_password(page, GOOD).status == 507
        assert try_password(page, "another password").status == 401
    assert try_password(page, GOOD).status == 200


def test_attempts_are_limited_by_address_and_in_all() -> None:
    attempts, now = PasswordAttempts(), time.monotonic()
    for _ in range(5):
        attempts.check("a", now)
        attempts.begin("a", now)
    with pytest.raises(TooManyAttempts):
        attempts.check("a", now)
    attempts.check("b", now)
    attempts.check("a", now + 3)
    for number in range(55):
        attempts.check(f"c{number}", now + 3)
        attempts.begin(f"c{number}", now + 3)
    with pytest.raises(TooManyAttempts) as refused:
        attempts.check("d", now + 3)
    assert 50 < refused.value.seconds <= 60
    for _ in range(40):
        attempts.begin("a", now)
    with pytest.raises(TooManyAttempts):
        attempts.check("a", now + 800)
    attempts.check("a", now + 901)


def test_hashes_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The password, the token and the token for publishing go through one comparison."""
    compared: list[tuple[object, object]] = []

    def compare(one: object, other: object) -> bool:
        compared.append((one, other))
        return False

    monkeypatch.setattr("hmac.compare_digest", compare)
    assert not guard.has_token("secret", {"authorization": ["Bearer secret"]}, [])
    assert not guard.may_publish("secret", {}, [], ["secret"])
    assert compared == [(b"secret", b"secret")] * 2
    access = PageAccess(str(tmp_path / "access.json"))
    asyncio.run(access.set_password(GOOD))
    with pytest.raises(Denied, match="wrong"):
        asyncio.run(access.log_in_with_password(GOOD, "a", []))
    assert len(compared) == 3
