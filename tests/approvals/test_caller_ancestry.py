"""A command that may run cannot have everything else run, or approved, by calling holdfast itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast import Client, NoApprover
from tests.approvals.surfaces import RISKY
from tests.support import eventually, run_cli

#: By another name, so that it is not the judge who sees what is called.
HOLDFAST = f"{sys.executable} -c 'import sys; from holdfast.cli.entry import main; sys.exit(main())'"


@pytest.fixture
def hf(home: Path) -> Iterator[Client]:
    with holdfast.connect(session="agent", strict=True) as client:
        yield client


def output(hf: Client, command: str) -> str:
    process = hf.run(command, gate=True)
    hf.wait(process.id, timeout=30)
    return hf.logs(process).text


@pytest.mark.parametrize("way", ["{}", "({} &)", "setsid -f {}", "env -i HOLDFAST_HOME=$HOLDFAST_HOME {}"])
def test_it_cannot_approve(hf: Client, way: str) -> None:
    with pytest.raises(NoApprover) as refused:
        hf.run(RISKY, gate=True)
    assert refused.value.data is not None
    request = refused.value.data["approval"]["id"]
    process = hf.run(way.format(f"{HOLDFAST} approve {request}"), gate=True)
    eventually(lambda: "cannot approve anything" in hf.logs(process).text, timeout=30)
    assert [one.state for one in hf.approvals()] == ["pending"]


def test_what_it_starts_is_judged(hf: Client) -> None:
    assert "needs an approval" in output(hf, f"{HOLDFAST} run -c '{RISKY}'")
    assert "fine" in output(hf, f"{HOLDFAST} run -c 'echo fi\"\"ne'")


def test_it_sees_its_own_session_alone(hf: Client) -> None:
    with holdfast.connect(session="other") as other:
        process = other.run("exec sleep 1000")
    assert process.id not in output(hf, f"{HOLDFAST} ps -a")
    for verb in ("kill", "inspect", "logs", "wait"):
        assert "no process" in output(hf, f"HOLDFAST_SESSION=other {HOLDFAST} {verb} {process.id}")
    assert "not for a connection" in output(hf, f"{HOLDFAST} daemon stop")


#: A child connects while the daemon is stopped, passes the connection to its parent and exits.
PASS_ON = """
import os, signal, socket, struct, sys
from holdfast.wire import frames
address = os.environ["HOLDFAST_HOME"] + "/daemon.sock"
first = socket.socket(socket.AF_UNIX)
first.connect(address)
daemon = struct.unpack("3i", first.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
ours, theirs = socket.socketpair()
os.kill(daemon, signal.SIGSTOP)
child = os.fork()
if not child:
    made = socket.socket(socket.AF_UNIX)
    made.connect(address)
    socket.send_fds(theirs, [b"x"], [made.fileno()])
    os._exit(0)
_, (fd,), _, _ = socket.recv_fds(ours, 1, 1)
os.waitpid(child, 0)
os.kill(daemon, signal.SIGCONT)
passed, decoder = socket.socket(fileno=fd), frames.FrameDecoder()

def ask(**message):
    passed.sendall(frames.encode(message))
    while True:
        for answer in decoder.feed(passed.recv(1 << 16)):
            return answer

ask(rid=1, op="hello", version=1, session=sys.argv[1])
print("approve", ask(rid=2, op="approve", id=sys.argv[2]))
print("list", ask(rid=3, op="list", all=True))
print("approvals", ask(rid=4, op="approvals", all=True))
"""


def request_of(hf: Client) -> str:
    with pytest.raises(NoApprover) as refused:
        hf.run(RISKY, gate=True)
    assert refused.value.data is not None
    return str(refused.value.data["approval"]["id"])


@pytest.mark.parametrize("gate", [True, False])
@pytest.mark.parametrize("session", ["agent", "other"])
def test_a_connection_of_a_dead_child_sees_and_approves_nothing(
    hf: Client, tmp_path: Path, gate: bool, session: str
) -> None:
    request = request_of(hf)
    (tmp_path / "pass_on.py").write_text(PASS_ON)
    with holdfast.connect(session="other") as other:
        secret = other.run("exec sleep 1000", name="secret")
    words = [sys.executable, str(tmp_path / "pass_on.py"), session, request]
    with holdfast.connect(session="agent") as starter:
        process = starter.run(words, gate=gate)
        assert starter.wait(process.id, timeout=30).exit_code == 0
    text = hf.logs(process).text
    assert "cannot approve anything" in text
    assert "\nlist" in text and secret.id not in text
    assert request not in text.partition("\napprovals")[2]
    assert [one.state for one in hf.approvals()] == ["pending"]


def test_nor_can_a_command_that_was_not_judged(hf: Client) -> None:
    request = request_of(hf)
    with holdfast.connect(session="agent") as user:
        process = user.run(f"{HOLDFAST} approve {request}")
        assert user.wait(process.id, timeout=30).exit_code == 125
    assert [one.state for one in hf.approvals()] == ["pending"]


def test_what_a_command_starts_that_was_not_judged_is_not_judged(hf: Client) -> None:
    with holdfast.connect(session="agent") as user:
        process = user.run(f"{HOLDFAST} run -c '{RISKY}'")
        user.wait(process.id, timeout=30)
        assert "needs an approval" not in user.logs(process).text


def test_a_caller_with_the_id_of_a_process_is_bound(hf: Client) -> None:
    """As one that another program started for the command: at, ssh, a service manager."""
    request = request_of(hf)
    mine = hf.run("exec sleep 1000")
    with holdfast.connect(session="other") as other:
        theirs = other.run("exec sleep 1000")
    for named in (mine.id, "proc_000000000000"):
        refused = run_cli("approve", request, env={"HOLDFAST_ID": named})
        assert refused.returncode == 125 and b"cannot approve anything" in refused.stderr
        seen = run_cli("ps", "-a", "--session", "other", env={"HOLDFAST_ID": named})
        assert theirs.id not in seen.stdout.decode()
    assert mine.id in run_cli("ps", "-a", env={"HOLDFAST_ID": mine.id}).stdout.decode()
    assert mine.id not in run_cli("ps", "-a", env={"HOLDFAST_ID": "proc_000000000000"}).stdout.decode()
    assert run_cli("approve", request).returncode == 0


def test_a_free_caller_may_end_after_it_connected(hf: Client) -> None:
    """It is decided when the connection is made: a program that goes into the background stays free."""
    request = request_of(hf)
    program = """
import os, sys
import holdfast
client = holdfast.connect()
client.status()
before = os.getpid()
if os.fork():
    os._exit(0)
while os.getppid() == before:
    pass
client.approve(sys.argv[1])
"""
    subprocess.run([sys.executable, "-c", program, request], check=True)
    eventually(lambda: [one.state for one in hf.approvals(all=True)] == ["approved"], timeout=30)


def test_it_cannot_take_the_name_of_a_session_that_is_yet_to_come(hf: Client) -> None:
    assert "ask the user" in output(hf, f"{HOLDFAST} session rename agent chat-43")


def test_it_publishes_for_its_own_session_alone(hf: Client) -> None:
    """Hooks and other sessions must not take its events for those of the daemon."""
    for words in ("process.ended", "approval.requested", "place.gone", """custom.x '{"type": "approval.decided"}'"""):
        said = output(hf, f"{HOLDFAST} publish {words}")
        assert "are published by the daemon" in said, said
    output(hf, f"{HOLDFAST} publish custom.topic")
    assert [event["session"] for event in hf.events("custom.topic")] == ["agent"]
    with holdfast.connect(session="other", strict=True) as other:
        assert list(other.events("custom.topic")) == []


def test_the_session_that_it_names_is_its_own(hf: Client) -> None:
    """As an agent does that was started as a held command, and names the conversation that it has."""
    with holdfast.connect(session="agent") as user:
        name = "export HOLDFAST_SESSION=chat"
        process = user.run(f"{name}; {HOLDFAST} run -d sleep 1000; {HOLDFAST} ps --session chat --json")
        user.wait(process.id, timeout=30)
        started = user.logs(process).text.splitlines()[0]
        assert user.inspect(started).session == "agent"
        assert started in user.logs(process).text.splitlines()[-1]


@pytest.mark.parametrize("way", ["{} > said 2>&1", "({} > said 2>&1 &)"])
def test_nor_can_its_stop_command(hf: Client, tmp_path: Path, way: str) -> None:
    """Which is no child of the command, but of the daemon."""
    with pytest.raises(NoApprover) as refused:
        hf.run(RISKY, gate=True)
    assert refused.value.data is not None
    stop_cmd = way.format(f"{HOLDFAST} approve {refused.value.data['approval']['id']}")
    process = hf.run("exec sleep 1000", gate=True, cwd=tmp_path, stop_cmd=stop_cmd)
    hf.kill(process.id)
    said = tmp_path / "said"
    eventually(lambda: said.exists() and "cannot approve anything" in said.read_text(), timeout=30)
    assert [one.state for one in hf.approvals()] == ["pending"]
