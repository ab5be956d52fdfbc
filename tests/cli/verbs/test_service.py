"""The daemon as a service: what it tells its manager, what the unit says, and what is done without systemd."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.systemd import unit_text
from holdfast.errors import BadValue
from holdfast.paths import Paths
from tests.cli.calling import as_json, out, refusal, start
from tests.support import eventually, is_alive, run_cli


class Manager:
    """A service manager that starts `holdfast daemon run` and listens on a datagram socket."""

    def __init__(self, address: str) -> None:
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sock.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        self._sock.settimeout(30.0)
        self._address = address
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> int:
        env = {**os.environ, "NOTIFY_SOCKET": self._address}
        self.process = subprocess.Popen([sys.executable, "-m", "holdfast", "daemon", "run"], env=env, stderr=-3)
        return self.process.pid

    def receive(self) -> list[str]:
        return self._sock.recv(4096).decode().split("\n")

    def stop(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(60)

    def close(self) -> None:
        self._sock.close()
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> Iterator[Manager]:
    manager = Manager(f"{tmp_path}/notify" if request.param == "path" else f"@holdfast-test-{os.getpid()}-{id(home):x}")
    yield manager
    manager.close()


def status() -> dict[str, object]:
    found: dict[str, object] = as_json("daemon", "status", "--json")
    return found


def test_it_says_when_it_is_ready_and_when_it_stops(manager: Manager, home: Path) -> None:
    pid = manager.start()
    assert manager.receive() == ["READY=1", f"STATUS=Serving {home}"]
    assert status()["pid"] == pid  # the very one that clients find
    held = start("-c", "echo ${NOTIFY_SOCKET-none}; exec sleep 60")
    assert manager.stop() == 0
    assert manager.receive() == ["STOPPING=1"]
    assert as_json("inspect", "--json", held)["status"] == "running"
    assert out("logs", held) == "none\n"


def test_it_stands_by_while_another_one_serves(manager: Manager, home: Path) -> None:
    held = start("sleep", "60")
    first = status()["pid"]
    assert isinstance(first, int)
    service = manager.start()
    ready, told = manager.receive()
    assert ready == "READY=1"
    assert f"another daemon (pid {first}) serves" in told
    os.kill(first, signal.SIGKILL)
    # The keeper brings a daemon back, or the service is quicker: in any case it is up, and told so.
    assert manager.receive()[0] == "READY=1"
    assert is_alive(service)
    serving = status()["pid"]
    assert isinstance(serving, int)
    assert as_json("inspect", "--json", held)["status"] == "running"
    assert manager.stop() == 0
    eventually(lambda: not is_alive(serving))
    assert as_json("inspect", "--json", held)["status"] == "running"


def test_when_the_other_one_stops_on_purpose_so_does_the_service(manager: Manager, home: Path) -> None:
    out("daemon", "start")
    manager.start()
    manager.receive()
    out("daemon", "stop")
    assert manager.process is not None
    assert manager.process.wait(30) == 0


def test_a_manager_that_does_not_listen_is_no_trouble(home: Path, tmp_path: Path) -> None:
    for address in (f"{tmp_path}/nobody", "nonsense", "@"):
        env = {**os.environ, "NOTIFY_SOCKET": address}
        daemon = subprocess.Popen([sys.executable, "-m", "holdfast", "daemon", "run"], env=env, stderr=-3)
        eventually(lambda: run_cli("daemon", "status").returncode == 0)
        daemon.terminate()
        assert daemon.wait(30) == 0


UGLY = "100% \"mine\" $HOME \\ 'x'"


@pytest.mark.parametrize("name", ["plain", UGLY])
def test_the_unit_is_what_systemd_understands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / name))
    text = out("service", "install", "--print")
    for line in ("Type=notify", "KillMode=process", "Restart=on-failure", "WantedBy=default.target"):
        assert f"\n{line}\n" in text
    assert not (tmp_path / name).exists()
    assert shutil.which("systemd-analyze"), "systemd is not installed; scripts/test installs it when root"
    unit = tmp_path / "holdfast-test.service"
    unit.write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, check=False)
    complaints = [line for line in done.stderr.decode().splitlines() if "holdfast-test" in line or str(unit) in line]
    assert (done.returncode, complaints) == (0, []), done.stderr


def test_a_path_that_no_unit_can_say() -> None:
    with pytest.raises(BadValue):
        unit_text(Paths("/a\nExecStart=b", "/a\nExecStart=b"), ["x"], {})


def test_the_service_has_the_home_of_the_installing_user() -> None:
    assert "Environment" not in unit_text(Paths("/s/holdfast", "/run/holdfast"), ["x"], {"HOME": "/h"})
    assert 'Environment="XDG_STATE_HOME=/s"' in unit_text(
        Paths("/s/holdfast", "/run/holdfast"), ["x"], {"XDG_STATE_HOME": "/s"}
    )
    assert 'Environment="HOLDFAST_HOME=/h"' in unit_text(Paths("/h", "/h"), ["x"], {"XDG_STATE_HOME": "/s"})


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where units go, with a PATH on which there is nothing but what a test puts there."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "config/systemd/user"


def put_systemctl(directory: Path, script: str) -> Path:
    calls = directory / "calls"
    (directory / "systemctl").write_text(f'#!/bin/sh\necho "$@" >> {calls}\n{script}\n')
    (directory / "systemctl").chmod(0o755)
    return calls


def test_install_and_remove(tmp_path: Path, config: Path) -> None:
    calls = put_systemctl(
        tmp_path, "[ $2 != show ] || printf 'UnitFileState=enabled\\nActiveState=active\\nMainPID=42\\n'"
    )
    about = as_json("service", "install", "--json")
    unit = config / about["unit"]
    assert unit.read_text() == out("service", "install", "--print")
    assert (about["installed"], about["enabled"], about["active"], about["pid"]) == (True, "enabled", "active", 42)
    assert calls.read_text().splitlines()[:2] == ["--user daemon-reload", f"--user enable --now {about['unit']}"]
    assert as_json("service", "status", "--json") == about
    assert "active     active" in out("service", "status")
    out("service", "install")
    calls.unlink()
    out("service", "remove")
    assert not unit.exists()
    assert calls.read_text().splitlines() == [f"--user disable --now {about['unit']}", "--user daemon-reload"]
    out("service", "remove")
    assert as_json("service", "status", "--json", code=125)["installed"] is False


def test_every_home_has_a_unit_of_its_own(tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def name() -> str:
        found: str = json.loads(run_cli("service", "status", "--json").stdout)["unit"]
        return found

    mine = name()
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "other"))
    assert name() != mine
    monkeypatch.delenv("HOLDFAST_HOME")
    assert name() == "holdfast.service"


def test_without_systemd_it_says_what_was_not_done(tmp_path: Path, config: Path) -> None:
    assert "systemctl was not found, so nothing was changed" in refusal("service", "install")
    assert not config.exists()
    assert "Type=notify" in out("service", "install", "--print")
    put_systemctl(tmp_path, "echo 'Failed to connect to bus' >&2; exit 1")
    said = refusal("service", "install")
    assert "was written, but systemctl --user daemon-reload failed: Failed to connect to bus" in said
    assert "systemctl --user enable --now" in said
    assert list(config.glob("*.service"))
    assert "installed  yes\n" in out("service", "status")
    assert "was deleted, but" in refusal("service", "remove")
    assert b"installed  no\n" in run_cli("service", "status").stdout
    assert not list(config.glob("*"))


@pytest.mark.parametrize("words", [[], ["dance"], ["install", "now"], ["remove", "--print"], ["--print"]])
def test_what_service_cannot(words: list[str]) -> None:
    refusal("service", *words)
