"""sudo in commands without a terminal: with the real sudo, by a user who was made for this."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import content_of, eventually, files_below
from tests.takeover.someone import Instance, Someone

#: Without the memory that sudo has of its own.
WHO = "sudo -k; sudo id -un"
#: Seconds for which a password is remembered. Two commands must be run within it.
KEEP = 8
#: Follows approvals as a person's terminal would; answers each sudo with the next of these.
SURFACE = """
import sys, holdfast
met = set()
with holdfast.connect(session="person") as hf, hf.follow_approvals() as reading:
    reading.receive(5)
    print("there", flush=True)
    for request in reading:
        if request.state == "pending" and request.id not in met:
            met.add(request.id)
            print(request.action, request.command, flush=True)
            hf.approval_shown(request)
            password = sys.stdin.readline().rstrip("\\n")
            hf.approval_password(request, password) if password else hf.deny(request)
"""


@contextmanager
def surface(instance: Instance, *passwords: str) -> Iterator[list[str]]:
    """While it is there, what sudo asks is answered, one password after the other. What it heard is in the list."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    heard: list[str] = []
    with instance.popen([sys.executable, "-c", SURFACE], **pipes) as running:
        assert running.stdin is not None and running.stdout is not None
        running.stdin.write("".join(f"{password}\n" for password in passwords).encode())
        running.stdin.flush()
        lines = running.stdout

        def listen() -> None:
            for line in lines:
                heard.append(line.decode().strip())

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        try:
            eventually(lambda: heard)
            assert heard.pop(0) == "there"
            yield heard
        finally:
            running.kill()
            thread.join(60)


def run(instance: Instance, command: str, *options: str) -> tuple[int, str]:
    """How a command without a terminal ended, and what it wrote."""
    ended = instance.holdfast("run", *options, "-c", command)
    return ended.returncode, ended.stdout.decode()


@pytest.fixture(scope="module")
def plain(someone: Someone) -> Instance:
    """Nothing is configured."""
    return someone.instance(f"sudo_keep = {KEEP}\n")


@pytest.fixture(scope="module")
def configured(someone: Someone) -> Instance:
    """What is in a file is the password."""
    return someone.instance(f"sudo_password_command = '. {someone.home}/printer'\n")


def prints(someone: Someone, script: str) -> None:
    """Have the configured command do this."""
    (someone.home / "printer").write_text(script)


def check_no_trace(instance: Instance, but: tuple[str, ...] = ()) -> None:
    """The password is on no disk of the instance, and in no process's arguments or environment."""
    canary = instance.someone.password.encode()
    found = [str(path) for path in files_below(instance.home) if path.name not in but and canary in content_of(path)]
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("cmdline", "environ"):
            try:
                shown = Path(f"/proc/{pid}/{name}").read_bytes()
            except OSError:
                continue
            if canary in shown:
                found.append(f"{name} of {pid}")
    assert found == []


def test_a_configured_password_works_in_the_background_and_leaves_no_trace(
    someone: Someone, configured: Instance
) -> None:
    instance = configured
    prints(someone, f"echo {someone.password}")
    started = instance.json("run", "-d", "-c", WHO)["id"]
    assert instance.holdfast("wait", started).returncode == 0
    assert instance.holdfast("logs", started).stdout == b"root\n"
    seen = f"{WHO}; tr '\\0' '\\n' < /proc/self/environ; sudo -n id -un; true"
    code, said = run(instance, seen)
    assert code == 0 and said.startswith("root\n") and someone.password not in said
    code, said = run(instance, WHO, "--gate")
    assert (code, said) == (0, "root\n")
    check_no_trace(instance)
    entries = instance.json("audit")
    assert {one["how"] for one in entries if one["what"] == "sudo.answered"} == {"configured"}


def test_a_wrong_configured_password_is_not_tried_three_times(someone: Someone, configured: Instance) -> None:
    prints(someone, "echo wrong")
    code, said = run(configured, WHO)
    assert code == 1 and "does not take the password of sudo_password_command" in said and "(wrong_password)" in said


def test_a_command_that_prints_nothing_is_said(someone: Someone, configured: Instance) -> None:
    prints(someone, "exit 3")
    code, said = run(configured, WHO)
    assert code == 1 and "sudo_password_command ended with exit code 3" in said and "(command_failed)" in said


def test_a_configured_password_may_come_in_parts(someone: Someone, configured: Instance) -> None:
    first, rest = someone.password[:5], someone.password[5:]
    prints(someone, f"printf %s {first}; sleep 0.3; echo {rest}; echo more; sleep 3 & :")
    assert run(configured, WHO) == (0, "root\n")
    prints(someone, "head -c 100000 /dev/zero | tr '\\0' a")
    code, said = run(configured, WHO)
    assert code == 1 and "prints more than a password" in said and "(command_failed)" in said


def test_without_a_way_to_ask_it_fails_at_once_and_says_why(plain: Instance) -> None:
    clock = "date +%s%N"
    code, said = run(
        plain, f"a=$({clock}); sudo -k id; code=$?; echo took $((($({clock}) - a) / 1000000)); exit $code", "--sudo"
    )
    assert code == 1 and "no approver is connected to type the password" in said and "(no_approver)" in said
    took = re.search(r"took (\d+)", said)
    assert took is not None and int(took[1]) < 20_000
    assert plain.json("approvals") == []  # nothing is left to be answered


def test_who_needs_no_password_is_never_asked(plain: Instance) -> None:
    with surface(plain, "wrong") as heard:
        before = [one for one in plain.json("audit") if one["what"].startswith("sudo.")]
        assert run(plain, "sudo /bin/true; echo $?", "--gate") == (0, "0\n")
        assert heard == []
        assert [one for one in plain.json("audit") if one["what"].startswith("sudo.")] == before


def test_an_approver_is_asked_and_for_a_while_not_again(someone: Someone, plain: Instance) -> None:
    mine = ("--sudo", "--session", "mine")
    with surface(plain, someone.password, someone.password) as heard:
        assert run(plain, WHO, *mine) == (0, "root\n")
        begun = time.monotonic()
        assert run(plain, WHO, *mine) == (0, "root\n")
        assert heard == ["sudo sudo id -un"] or time.monotonic() - begun > KEEP
        assert run(plain, WHO, "--sudo", "--session", "another") == (0, "root\n")
        assert len(heard) == 2
        check_no_trace(plain)
    time.sleep(max(0.0, KEEP - (time.monotonic() - begun)))
    code, said = run(plain, WHO, *mine)
    assert code == 1 and "(no_approver)" in said
    how = [one["how"] for one in plain.json("audit") if one["what"] == "sudo.answered"]
    assert how[-3:] == ["person", "remembered", "person"]


@pytest.mark.full
def test_a_wrong_password_is_asked_for_again_and_not_remembered(someone: Someone, plain: Instance) -> None:
    instance = plain
    with surface(instance, "wrong", "still wrong", "wrong again") as heard:
        code, said = run(instance, WHO, "--sudo")
        assert code == 1 and "3 incorrect password attempts" in said
        assert len(heard) == 3
    with surface(instance, "wrong", someone.password) as heard:
        assert run(instance, WHO, "--sudo")[1].endswith("root\n")
        assert len(heard) == 2


def test_the_user_may_refuse(plain: Instance) -> None:
    with surface(plain, ""):
        code, said = run(plain, WHO, "--sudo", "--session", "refused")
    assert code == 1 and "the user refused to type the password" in said and "(denied)" in said


def test_only_sudo_itself_gets_a_password(someone: Someone, configured: Instance) -> None:
    instance = configured
    prints(someone, f"echo {someone.password}")
    as_sudo = "mkdir own; ln -s /bin/sh own/sudo; own/sudo -c '$SUDO_ASKPASS; :'"
    code, said = run(instance, f"$SUDO_ASKPASS; {as_sudo}; :", "--cwd", str(instance.home))
    assert code == 0 and said.count("(denied)") == 2 and someone.password not in said
    helper, pipes = f"{instance.home}/sudo/askpass", {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with instance.popen(["sh", "-c", helper], **pipes) as outside:
        out, err = outside.communicate(timeout=30)
    assert (outside.returncode, out) == (1, b"") and b"(denied)" in err


def test_options_of_sudo_are_left_alone(someone: Someone, configured: Instance) -> None:
    prints(someone, f"echo {someone.password}")
    code, said = run(
        configured, f". {someone.home}/printer | sudo -k -S -p '' id -un; sudo -k; sudo -n id -un; echo $?"
    )
    assert code == 0 and said.startswith("root\n") and said.endswith("1\n")
    several = "sudo -k; sudo -u nobody id -un; sudo A=1 sh -c 'echo $A'; sudo -- id -un"
    assert run(configured, several)[1] == "nobody\n1\nroot\n"


def test_with_a_terminal_sudo_asks_there(someone: Someone, configured: Instance) -> None:
    instance = configured
    prints(someone, "echo wrong")
    started = instance.json("run", "-d", "-t", "-c", WHO)["id"]
    asked = eventually(lambda: instance.json("inspect", started)["needs_input"], timeout=20, pause=0.2)
    assert asked["secret"] and "password for" in asked["prompt"]
    assert instance.holdfast("send", started, "--secret", input=someone.password.encode()).returncode == 0
    assert instance.holdfast("wait", started, "--timeout", "30").returncode == 0
    assert "root" in instance.holdfast("logs", started).stdout.decode()
    check_no_trace(instance)


def test_the_user_types_the_password_where_approvals_are_followed(someone: Someone, plain: Instance) -> None:
    with plain.terminal("approvals", "--follow") as terminal:
        terminal.see("waiting for requests")
        started = plain.json("run", "-d", "--sudo", "--session", "followed", "-c", WHO)["id"]
        shown = terminal.see("> ")
        assert b"sudo asks for a password" in shown and b"sudo id -un" in shown and b"45 s" in shown
        request = plain.json("approvals")[0]["id"]
        refused = plain.holdfast("approve", request)
        assert refused.returncode == 125 and b"asks for a password" in refused.stderr
        terminal.type(someone.password.encode() + b"\r")
        shown = terminal.see("is answered")
        assert someone.password.encode() not in shown
        assert plain.holdfast("wait", started).returncode == 0
        eventually(lambda: terminal.is_as_before)
    assert plain.holdfast("logs", started).stdout == b"root\n"
    check_no_trace(plain)


def test_a_follower_that_leaves_takes_its_question_along(plain: Instance) -> None:
    with plain.terminal("approvals", "--follow") as terminal:
        terminal.see("waiting for requests")
        started = plain.json("run", "-d", "--sudo", "--session", "left", "-c", WHO)["id"]
        terminal.see("> ")
        terminal.type(b"\r")
        terminal.see("is denied")
        assert plain.holdfast("wait", started).returncode == 1
        assert terminal.is_as_before


def test_questions_of_a_user_without_rights_are_seen(plain: Instance) -> None:
    started = plain.json("run", "-d", "-t", "-c", "read -p 'name? ' x")["id"]
    eventually(lambda: plain.json("inspect", started)["needs_input"], timeout=20, pause=0.2)


def test_the_first_starts_may_come_at_once(someone: Someone) -> None:
    many = """
import threading, holdfast
ready = threading.Barrier(12)
def start():
    with holdfast.connect() as hf:
        hf.status(), ready.wait()
        print(hf.run("true", sudo=True, notify="never").id)
threads = [threading.Thread(target=start) for _ in range(12)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
"""
    for _ in range(3):
        instance = someone.instance()
        with instance.popen([sys.executable, "-c", many], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as starting:
            said = starting.communicate(timeout=60)[0].decode()
        assert said.count("proc_") == 12 and "failed" not in said, said
        assert sorted(os.listdir(instance.home / "sudo")) == ["askpass", "sudo"]


def test_a_password_is_accepted_only_while_a_command_waits_for_it(plain: Instance) -> None:
    with surface(plain) as heard:
        started = plain.json("run", "-d", "--sudo", "--session", "cut", "-c", WHO)["id"]
        eventually(lambda: heard, timeout=20)
        (request,) = [one["id"] for one in plain.json("approvals") if one["session"] == "cut"]
        os.kill(plain.json("daemon", "status")["pid"], signal.SIGKILL)
        plain.holdfast("wait", started)
    assert request in [one["id"] for one in plain.json("approvals")]
    type_it = f"import holdfast; holdfast.connect().approval_password('{request}', 'too late')"
    with plain.popen([sys.executable, "-c", type_it], stderr=subprocess.PIPE) as typing:
        said = typing.communicate(timeout=30)[1].decode()
    assert typing.returncode == 1 and "NotNow" in said and "no sudo waits" in said
