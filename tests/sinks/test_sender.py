"""`python -m holdfast.sinks` with real servers, a real Apprise and a real program behind it."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from holdfast.sinks import webhook
from tests.sinks.receiver import Plan, Receiver

MESSAGE = {"id": "note_0123456789ab", "payload": '{"kind": "completion", "wörd": "ü"}', "level": "failure"}
TEXTS = {"line": "make failed [chat-42]", "tail": "last words"}


class Sender:
    def __init__(self, env: Mapping[str, str] = {}) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "holdfast.sinks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **env},
        )

    def send(self, way: str, **more: Any) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"n": 1, "way": way, **MESSAGE, **TEXTS, **more}).encode() + b"\n")
        self.process.stdin.flush()
        reply: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert reply.pop("n") == 1
        return reply

    def close(self) -> int:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(60)
        self.process.stdout.close()
        return code


@pytest.fixture
def sender() -> Iterator[Sender]:
    made = Sender()
    yield made
    assert made.close() == 0


SENT = {"sent": True, "error": "", "permanent": False, "retry_after": None}


def test_a_webhook_gets_the_message_as_it_is_and_can_check_it(sender: Sender, receiver: Receiver) -> None:
    assert sender.send("webhook", address=f"{receiver.url}/in?a=b", secret="hush") == SENT
    (got,) = receiver.got
    assert (got.path, got.body.decode()) == ("/in?a=b", MESSAGE["payload"])
    assert got.headers["webhook-id"] == got.headers["Idempotency-Key"] == MESSAGE["id"]
    assert abs(int(got.headers["webhook-timestamp"]) - time.time()) < 60
    assert got.headers["Content-Type"] == "application/json"
    assert got.is_signed_with(b"hush") and not got.is_signed_with(b"hush!")


def test_a_secret_in_base64(sender: Sender, receiver: Receiver) -> None:
    secret = "whsec_" + base64.b64encode(b"\0\1binary").decode()
    assert sender.send("webhook", address=receiver.url, secret=secret)["sent"]
    assert receiver.got[0].is_signed_with(b"\0\1binary")
    broken = sender.send("webhook", address=receiver.url, secret="whsec_#hush#")
    assert broken["permanent"] and "no base64" in broken["error"] and "hush" not in broken["error"]


def test_secrets_from_files(sender: Sender, receiver: Receiver, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hush\n")
    (tmp_path / "address").write_text(f"{receiver.url}/T0KEN\n")
    files = {"address_file": str(tmp_path / "address"), "secret_file": str(tmp_path / "secret")}
    assert sender.send("webhook", **files) == SENT
    assert receiver.got[0].is_signed_with(b"hush")
    (tmp_path / "secret").unlink()
    missing = sender.send("webhook", **files)
    assert not missing["sent"] and not missing["permanent"] and "cannot read" in missing["error"]


def test_without_a_secret_nothing_is_signed_and_a_password_is_sent(sender: Sender, receiver: Receiver) -> None:
    assert sender.send("webhook", address=f"http://us%40er:pass@127.0.0.1:{receiver.port}/")["sent"]
    headers = receiver.got[0].headers
    assert "webhook-signature" not in headers
    assert headers["Authorization"] == f"Basic {base64.b64encode(b'us@er:pass').decode()}"


@pytest.mark.parametrize(
    ("status", "permanent"),
    [(500, False), (503, False), (408, False), (425, False), (429, False), (400, True), (401, True), (404, True)],
)
def test_refusals(sender: Sender, receiver: Receiver, status: int, permanent: bool) -> None:
    receiver.usual = Plan(status, body=b"no such T0KEN42 here\n")
    answer = sender.send("webhook", address=f"{receiver.url}/T0KEN42")
    assert (answer["sent"], answer["permanent"]) == (False, permanent)
    assert answer["error"].startswith(f"answered {status} ") and answer["error"].endswith(": no such … here")


def test_a_redirect_is_not_followed(sender: Sender, receiver: Receiver) -> None:
    receiver.usual = Plan(307, {"Location": f"{receiver.url}/elsewhere"})
    answer = sender.send("webhook", address=f"{receiver.url}/in")
    assert answer["permanent"] and "redirect" in answer["error"]
    assert [got.path for got in receiver.got] == ["/in"]


@pytest.mark.parametrize(("told", "seconds"), [("17", 17.0), ("0", 0.0), ("soon", None), ("-3", None)])
def test_retry_after(sender: Sender, receiver: Receiver, told: str, seconds: float | None) -> None:
    receiver.usual = Plan(429, {"Retry-After": told})
    assert sender.send("webhook", address=receiver.url)["retry_after"] == seconds


def test_retry_after_a_date(sender: Sender, receiver: Receiver) -> None:
    receiver.usual = Plan(429, {"Retry-After": formatdate(time.time() + 300, usegmt=True)})
    assert 200 <= sender.send("webhook", address=receiver.url)["retry_after"] <= 300


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("plan", [Plan(hang=True), Plan(drip=True)], ids=["silent", "dripping"])
def test_one_that_hangs_costs_ten_seconds(sender: Sender, receiver: Receiver, plan: Plan) -> None:
    receiver.plans = [plan]
    began = time.monotonic()
    answer = sender.send("webhook", address=receiver.url)
    assert webhook.TIMEOUT - 1 < time.monotonic() - began < webhook.TIMEOUT + 5
    assert not answer["sent"] and not answer["permanent"] and "within 10 s" in answer["error"]
    assert sender.send("webhook", address=receiver.url) == SENT


def test_without_a_listener(sender: Sender) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        answer = sender.send("webhook", address=f"http://127.0.0.1:{taken.getsockname()[1]}/T0KEN42")
    assert answer["error"] == "cannot reach 127.0.0.1: Connection refused"
    assert not answer["permanent"]


@pytest.mark.parametrize("address", ["nonsense T0KEN42", "https://bad..host/T0KEN42", "file:///T0KEN42"])
def test_what_is_no_address_is_an_error_without_it(sender: Sender, address: str) -> None:
    answer = sender.send("webhook", address=address)
    assert not answer["sent"] and answer["error"] and "T0KEN42" not in answer["error"]


def test_a_server_without_a_trusted_certificate_gets_no_notice(sender: Sender, receiver: Receiver) -> None:
    answer = sender.send("webhook", address=f"https://127.0.0.1:{receiver.port}/T0KEN42")
    assert not answer["sent"] and "cannot reach 127.0.0.1" in answer["error"]
    assert receiver.got == []


def test_closed_streams_do_no_harm(receiver: Receiver) -> None:
    job = json.dumps({"way": "webhook", "address": receiver.url, **MESSAGE, **TEXTS})
    call = [sys.executable, "-P", "-m", "holdfast.sinks"]
    done = subprocess.run(call, input=job.encode(), stdout=subprocess.PIPE, preexec_fn=lambda: os.close(2), check=True)
    assert json.loads(done.stdout) == {"n": None, **SENT}


def test_apprise_for_real(sender: Sender, receiver: Receiver) -> None:
    answer = sender.send("apprise", address=f"json://user:T0KEN42@127.0.0.1:{receiver.port}/in", line="hey @all")
    assert answer == SENT
    (got,) = receiver.got
    assert got.path == "/in"
    assert got.json["message"] == "hey @\u200ball\nlast words"
    assert (got.json["title"], got.json["type"]) == ("", "failure")


def test_an_error_of_apprise_says_why_without_the_secret(sender: Sender, receiver: Receiver) -> None:
    receiver.usual = Plan(500)
    answer = sender.send("apprise", address=f"json://user:T0KEN42@127.0.0.1:{receiver.port}/SECRETPATH")
    assert not answer["sent"] and not answer["permanent"]
    assert "500" in answer["error"]
    assert "T0KEN42" not in answer["error"] and "SECRETPATH" not in answer["error"]


def test_what_apprise_does_not_know_is_refused_for_good(sender: Sender) -> None:
    answer = sender.send("apprise", address="nosuchservice://T0KEN42/")
    assert answer["permanent"] and "Apprise does not know" in answer["error"] and "T0KEN42" not in answer["error"]


def test_without_apprise_the_error_names_the_next_step(tmp_path: Path, receiver: Receiver) -> None:
    (tmp_path / "apprise.py").write_text("raise ImportError\n")
    sender = Sender({"PYTHONPATH": str(tmp_path)})
    answer = sender.send("apprise", address="json://127.0.0.1/")
    assert "[notify]'" in answer["error"] and not answer["permanent"]
    assert sender.send("webhook", address=receiver.url) == SENT
    assert sender.close() == 0


def test_apprise_is_not_imported_for_a_webhook() -> None:
    code = "import sys, holdfast.sinks.__main__, holdfast.sinks.webhook; print('apprise' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"False\n"


def test_the_desktop(tmp_path: Path) -> None:
    told = tmp_path / "told"
    program = tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {told}\n')
    program.chmod(0o755)
    sender = Sender({"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert sender.send("desktop", line="--help", tail="<b>1 & 2</b>") == SENT
    assert sender.close() == 0
    expected = ["--app-name=holdfast", "--urgency=critical", "--", "--help", "&lt;b&gt;1 &amp; 2&lt;/b&gt;"]
    assert told.read_text().splitlines() == expected


def test_no_desktop_and_one_that_fails(tmp_path: Path) -> None:
    sender = Sender({"PATH": str(tmp_path)})
    assert "there is no notify-send here" in sender.send("desktop")["error"]
    (tmp_path / "notify-send").write_text("#!/bin/sh\necho no bus >&2; exit 1\n")
    (tmp_path / "notify-send").chmod(0o755)
    assert sender.send("desktop")["error"] == "notify-send failed: no bus"
    assert sender.close() == 0
