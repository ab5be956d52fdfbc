"""Processes in sandboxes of E2B: the real command, daemon and SDK; the service is a server of the tests."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import BadValue
from holdfast.places.clouds import CloudBackend
from holdfast.places.clouds.e2b import E2bBackend
from tests.places.clouds.e2b_server import KEY, E2bServer, FakeSandbox
from tests.places.clouds.instance import Instance
from tests.support import end_instance, eventually

pytest.importorskip("e2b")

COUNT = "for i in $(seq 1 200); do echo line $i; sleep 0.01; done; exit 7"
LINES = "".join(f"line {number}\n" for number in range(1, 201))


@pytest.fixture(scope="module")
def server() -> Iterator[E2bServer]:
    server = E2bServer()
    yield server
    server.close()


@pytest.fixture
def hf(tmp_path: Path, server: E2bServer) -> Iterator[Instance]:
    instance = Instance(tmp_path, "e2b", server)
    yield instance
    server.trouble = None
    end_instance(str(instance.home))
    for name in list(server.sandboxes):
        server.end(name)
    server.requests.clear()


# Commands.


@pytest.mark.full
def test_a_command_runs_there_and_later_ones_in_the_same_sandbox(hf: Instance) -> None:
    hf.configure(api_key_file=str(hf.server.key_file), env={"FLOWERS": "roses"})
    shown = hf("run", "--backend", "e2b", "--env", "GIVEN=here", "--", "sh", "-c", "pwd; env; exit 3", code=3)
    sandbox = hf.sandbox()
    lines = shown.splitlines()
    assert lines[0] == str(sandbox.home)
    assert {"FLOWERS=roses", "GIVEN=here", sandbox.mark} <= set(lines)
    assert not any(line.startswith("HOLDFAST_HOME=") or KEY in line for line in lines)
    assert set(sandbox.labels) == {"holdfast.instance", "holdfast.place"}
    assert hf("run", "-i", "--backend", "e2b", "cat", given="typed") == "typed"
    assert hf.sandbox() is sandbox
    hf("run", "--backend", "e2b", "--task", "other", "true")
    assert len(hf.server.sandboxes) == 2


@pytest.mark.full
def test_a_terminal_has_the_size_that_was_asked_for(hf: Instance) -> None:
    assert "30 120" in hf("run", "-t", "--backend", "e2b", "stty size")


@pytest.mark.full
def test_files_are_copied(hf: Instance, tmp_path: Path) -> None:
    process = hf.start("--name", "kept", "sleep 1000")
    data = os.urandom(300_000)
    (tmp_path / "sent").write_bytes(data)
    hf("cp", str(tmp_path / "sent"), "kept:there")
    assert (hf.sandbox().home / "there").read_bytes() == data
    hf("cp", "kept:there", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == data
    hf("kill", process)


@pytest.mark.full
def test_kill_ends_a_tree_and_nothing_else(hf: Instance) -> None:
    other = hf.start("sleep 1000")
    process = hf.start("setsid sleep 1001 & sleep 1002")
    sandbox = hf.sandbox()

    def sleeps() -> set[bytes]:
        words = [Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") for pid in sandbox.pids()]
        return {one[1] for one in words if one[0] == b"sleep"}

    eventually(lambda: sleeps() == {b"1000", b"1001", b"1002"})
    hf("kill", process)
    eventually(lambda: sleeps() == {b"1000"})
    assert hf.status(other) == "running"
    assert hf.sandbox() is sandbox


# What breaks.


@pytest.mark.full
@pytest.mark.parametrize("trouble", [pytest.param(0, marks=pytest.mark.full), 502])
def test_a_cut_connection_is_no_end(hf: Instance, trouble: int) -> None:
    process = hf.start("--", "sh", "-c", COUNT)
    eventually(lambda: "line 20" in hf("logs", process))
    sandbox = hf.sandbox()
    hf.server.cut(trouble)
    eventually(lambda: hf.status(process) == "unreachable")
    assert hf.json("inbox") == []
    hf.server.trouble = None
    eventually(lambda: hf.has_ended(process), timeout=30.0)
    assert hf("logs", process) == LINES
    assert hf.notice()["data"]["exit_code"] == 7
    assert hf.sandbox() is sandbox


@pytest.mark.full
def test_a_connection_that_is_cut_again_and_again_loses_nothing(hf: Instance) -> None:
    process = hf.start("--", "sh", "-c", COUNT)
    for _ in range(3):
        size = len(hf("logs", process))
        eventually(lambda: len(hf("logs", process)) > size or hf.has_ended(process), timeout=20.0)  # noqa: B023
        hf.server.cut()
    eventually(lambda: hf.has_ended(process), timeout=30.0)
    assert hf("logs", process) == LINES
    assert hf.notice()["data"]["exit_code"] == 7


@pytest.mark.full
def test_nothing_is_lost_when_the_daemon_is_killed(hf: Instance) -> None:
    process = hf.start("--", "sh", "-c", COUNT)
    eventually(lambda: "line 20" in hf("logs", process))
    sandbox = hf.sandbox()
    os.kill(int(hf.json("daemon", "status")["pid"]), signal.SIGKILL)
    eventually(lambda: hf.has_ended(process), timeout=30.0)
    assert hf("logs", process) == LINES
    assert hf.notice()["data"]["exit_code"] == 7
    assert hf.sandbox() is sandbox


@pytest.mark.full
def test_a_relay_ends_with_the_daemon_that_started_it(hf: Instance) -> None:
    process = hf.start("sleep 1000")
    (relay,) = relays(hf.sandbox())
    os.kill(int(hf.json("daemon", "status")["pid"]), signal.SIGKILL)
    eventually(lambda: relay not in relays(hf.sandbox()), timeout=20.0)
    assert hf.status(process) in ("running", "unreachable")


def relays(sandbox: FakeSandbox) -> list[int]:
    lines = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in sandbox.pids() if Path(f"/proc/{pid}").exists()}
    return [pid for pid, line in lines.items() if line.startswith(b"holdfast: relay")]


@pytest.mark.full
def test_a_sandbox_that_was_ended_elsewhere_ends_its_processes_once(hf: Instance) -> None:
    process = hf.start("--", "sh", "-c", "echo before; sleep 1000")
    eventually(lambda: "before" in hf("logs", process))
    first = hf.sandbox().id
    hf.server.end(first)
    eventually(lambda: hf.has_ended(process), timeout=20.0)
    assert hf.json("inspect", process)["reason"] == "lost"
    assert hf("logs", process) == "before\n"
    assert hf.notice()["process"] == process
    assert "again" in hf("run", "--backend", "e2b", "echo again")
    assert hf.sandbox().id != first


@pytest.mark.full
def test_a_sandbox_in_use_is_prolonged_and_an_orphan_is_not(hf: Instance) -> None:
    hf.configure(api_key_file=str(hf.server.key_file), timeout=10)
    hf.start("sleep 1000")
    sandbox = hf.sandbox()
    first = sandbox.end_at
    assert first - sandbox.started_at < 12
    eventually(lambda: sandbox.end_at > first, timeout=20.0)
    end_instance(str(hf.home))
    last = sandbox.end_at
    assert sandbox.pids()
    eventually(lambda: not hf.server.sandboxes, timeout=30.0)
    assert sandbox.end_at == last


@pytest.mark.full
def test_a_bridge_that_was_killed_while_it_made_the_sandbox_leaves_one_that_is_used(hf: Instance) -> None:
    hf("daemon", "start", code=None)
    stop = threading.Event()

    def kill_bridges() -> None:
        while not stop.wait(0.01):
            if hf.server.sandboxes:
                for name in filter(str.isdigit, os.listdir("/proc")):
                    try:
                        words = Path("/proc", name, "cmdline").read_bytes()
                    except OSError:
                        continue
                    if b"holdfast.places.clouds.e2b" in words:
                        os.kill(int(name), signal.SIGKILL)
                        return

    killer = threading.Thread(target=kill_bridges)
    killer.start()
    hf("run", "--backend", "e2b", "true", code=None)
    stop.set()
    killer.join()
    hf("run", "--backend", "e2b", "true")
    assert len(hf.server.sandboxes) == 1


# Ending sandboxes.


@pytest.mark.full
def test_stop_ends_sandboxes_without_processes_and_all_when_asked(hf: Instance) -> None:
    process = hf.start("sleep 1000")
    hf("backends", "stop", "e2b", code=None)
    assert hf.status(process) == "running"
    hf("backends", "stop", "e2b", "--all")
    assert not hf.server.sandboxes
    assert hf.has_ended(process)
    hf("run", "--backend", "e2b", "true")


@pytest.mark.full
def test_clean_ends_what_no_process_needs(hf: Instance) -> None:
    hf("run", "--backend", "e2b", "true")
    needed = hf.start("--task", "other", "sleep 1000")
    idle, used = hf.server.sandboxes.values()
    foreign = FakeSandbox(hf.server.directory, {"holdfast.instance": "another"}, 900)
    hf.server.sandboxes[foreign.id] = foreign
    assert idle.id in hf("backends", "clean")
    assert set(hf.server.sandboxes) == {used.id, foreign.id}
    assert hf.status(needed) == "running"


@pytest.mark.full
def test_a_sandbox_without_processes_is_ended_when_it_was_idle(hf: Instance) -> None:
    hf.configure(api_key_file=str(hf.server.key_file), idle=1)
    hf("run", "--backend", "e2b", "true")
    eventually(lambda: not hf.server.sandboxes, timeout=20.0)


# Keys and options.


@pytest.mark.full
def test_the_key_is_shown_nowhere(hf: Instance) -> None:
    process = hf.start("sleep 1000")
    shown = hf.shown()
    assert shown["state"] == "ready"
    assert shown["detail"].startswith("e2b ")
    places = [hf("backends"), json.dumps(shown), hf("inspect", process)]
    for name in filter(str.isdigit, os.listdir("/proc")):
        for file in ("cmdline", "environ"):
            try:
                text = Path("/proc", name, file).read_bytes().decode(errors="replace")
            except OSError:
                continue
            if int(name) != os.getpid():
                places.append(text)
    places += [path.read_bytes().decode(errors="replace") for path in hf.home.rglob("*") if path.is_file()]
    assert not [text for text in places if KEY in text]


@pytest.mark.full
def test_the_key_of_a_shell_is_not_kept_by_the_daemon(hf: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("E2B_API_KEY", KEY)
    hf.configure()
    assert "api_key_file" in hf.shown()["detail"]
    pid = hf.json("daemon", "status")["pid"]
    assert KEY.encode() not in Path(f"/proc/{pid}/environ").read_bytes()


@pytest.mark.full
def test_a_command_may_print_the_key(hf: Instance) -> None:
    hf.configure(api_key_command=f"cat {hf.server.key_file}")
    assert "there" in hf("run", "--backend", "e2b", "echo there")


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "api_key_file in [backends.e2b]"),
        ({"api_key_file": "/missing/key"}, "/missing/key cannot be read: No such file"),
        ({"api_key_command": "echo secret >&2; exit 3"}, "api_key_command in [backends.e2b] ended with 3"),
        ({"api_key_command": "true"}, "there is no API key"),
        ({"api_key_command": "echo e2b_wrong"}, "e2b: 401"),
        ({"api_key_file": "OPEN"}, "chmod 600"),
    ],
)
def test_a_wrong_key_is_named_in_one_line(hf: Instance, tmp_path: Path, options: dict[str, str], expected: str) -> None:
    if options.get("api_key_file") == "OPEN":
        options = {"api_key_file": str(tmp_path / "open")}
        (tmp_path / "open").write_text(KEY)
        (tmp_path / "open").chmod(0o644)
    hf.configure(**options)
    shown = hf("run", "--backend", "e2b", "true", code=125)
    assert expected in shown
    assert "Traceback" not in shown and "secret" not in shown and KEY not in shown
    assert not hf.server.sandboxes


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"colour": "red"}, "no option 'colour'"),
        ({"template": ""}, "must be the name of a template"),
        ({"template": "\x1b[31mred"}, "must be the name of a template"),
        ({"template": 7}, "must be the name of a template"),
        ({"timeout": "soon"}, "timeout of the backend e2b"),
        ({"timeout": 1}, "from 10 to 86400"),
        ({"timeout": float("nan")}, "from 10 to 86400"),
        ({"timeout": True}, "must be a time"),
        ({"idle": 0}, "idle of the backend e2b"),
        ({"cwd": "relative"}, "must be an absolute path"),
        ({"env": ["A=B"]}, "must be a table of texts"),
        ({"env": {"HOLDFAST_HOME": "x"}}, "cannot have the variable"),
        ({"api_key_file": "key"}, "must be the absolute path"),
        ({"api_key_file": "/a\nb"}, "must be the absolute path"),
        ({"api_key_command": "a\nb"}, "must be a command text"),
        ({"internet": "no"}, "must be true or false"),
        ({"domain": "a b"}, "must be a domain"),
        ({"user": "-x"}, "must be the name of a user"),
    ],
)
def test_wrong_options_are_refused_in_one_line(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(BadValue) as refused:
        E2bBackend("e2b", options).check_options({})
    assert expected in refused.value.message
    assert refused.value.message.isprintable()


@pytest.mark.full
def test_an_image_is_a_template() -> None:
    assert E2bBackend("e2b", {"template": "one"}).check_options({"image": "two"})["template"] == "two"


@pytest.mark.full
def test_without_the_sdk_the_next_step_is_named(hf: Instance) -> None:
    import asyncio

    class AbsentSdkBackend(CloudBackend):
        kind, package, rules, key_variable = "absent", "no-such-sdk", {}, "NO_KEY"

    found = asyncio.run(AbsentSdkBackend("absent", {}).state({}))
    assert found.state == "unusable"
    assert "[no-such-sdk]" in found.detail


@pytest.mark.full
def test_a_directory_that_does_not_exist_there_is_named(hf: Instance) -> None:
    hf.configure(api_key_file=str(hf.server.key_file), cwd="/missing/directory")
    began = time.monotonic()
    assert "/missing/directory" in hf("run", "--backend", "e2b", "true", code=125)
    assert time.monotonic() - began < 30
