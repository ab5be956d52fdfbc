"""A person types a secret: the process gets it, and nobody else, however it was typed."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import holdfast
from holdfast import Client, Denied, NotNow
from tests.approvals.surfaces import RISKY
from tests.cli.calling import Terminal, refusal, start
from tests.support import content_of, eventually, files_below, processes_of, run_cli

#: Tells what it got by its hash alone.
ASK = "import getpass, hashlib; print(hashlib.sha256(getpass.getpass('Open: ').encode()).hexdigest())"
PIPE = "import hashlib; print(hashlib.sha256(input('Open: ').encode()).hexdigest())"


@pytest.fixture
def hf(instance: Path) -> Iterator[Client]:
    with holdfast.connect(session="person") as client:
        yield client


@pytest.fixture
def canary() -> str:
    return f"canary-{os.urandom(8).hex()}"


def asking(hf: Client, command: str = ASK) -> str:
    process = hf.run([sys.executable, "-c", command], pty=command == ASK, stdin=command != ASK).id
    eventually(lambda: hf.inspect(process).needs_input)
    return process


def got(hf: Client, process: str, canary: str) -> bool:
    return hashlib.sha256(canary.encode()).hexdigest() in hf.logs(process).text


def traces(home: Path, canary: str) -> list[str]:
    """Where it can be found: on disk, in what processes show of themselves, in the memory files of the keeper."""
    wanted = canary.encode()
    found = [str(path) for path in files_below(home) if wanted in content_of(path)]
    for pid in processes_of(str(home)):
        for name in ("cmdline", "environ"):
            if wanted in content_of(Path(f"/proc/{pid}/{name}")):
                found.append(f"{name} of {pid}")
        found += [f"{fd} of {pid}" for fd, content in memory_files(pid) if wanted in content]
    return found


def memory_files(pid: int) -> Iterator[tuple[str, bytes]]:
    """Of a process that may close them, or end, at any moment."""
    with suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                if "memfd" in os.readlink(path := f"/proc/{pid}/fd/{fd}"):
                    yield fd, Path(path).read_bytes()


def check_no_trace(hf: Client, home: Path, canary: str) -> None:
    assert traces(home, canary) == []
    said = [list(hf.events(since=0)), hf.audit(), [one.fields for one in hf.inbox()]]
    assert canary not in str(said)


def test_a_secret_typed_on_a_terminal_reaches_the_process_alone(hf: Client, instance: Path, canary: str) -> None:
    process = asking(hf)
    with Terminal("send", process, "--secret") as terminal:
        shown = terminal.see("not shown: ")
        assert b"Open:" in shown
        terminal.type(canary.encode() + b"\r")
        assert terminal.end() == 0
        assert canary.encode() not in terminal._seen and terminal.is_as_before
    eventually(lambda: got(hf, process, canary))
    entries = [one for one in hf.audit()["entries"] if one["what"] == "secret.typed" and one["process"] == process]
    assert [one["by"] for one in entries] == ["default"]
    check_no_trace(hf, instance, canary)


def test_a_secret_typed_while_attached_is_kept_nowhere(hf: Client, instance: Path, canary: str) -> None:
    process = asking(hf)
    with Terminal("attach", process) as terminal:
        terminal.see("Open: ")
        eventually(lambda: terminal.is_raw)
        for key in canary:
            terminal.type(key.encode())
            time.sleep(0.01)
        terminal.type(b"\r")
        terminal.see(hashlib.sha256(canary.encode()).hexdigest())
    attached = lambda: [one["by"] for one in hf.events("process.attached", since=0) if one["id"] == process]  # noqa: E731
    assert eventually(attached) == ["default"]
    check_no_trace(hf, instance, canary)


def test_a_secret_from_stdin_reaches_a_pipe(hf: Client, instance: Path, canary: str) -> None:
    process = asking(hf, PIPE)
    done = run_cli("send", process, "--secret", input=f"{canary}\n".encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    eventually(lambda: got(hf, process, canary))
    assert [path for path in files_below(instance) if canary.encode() in content_of(path)] == []


def test_it_is_refused_where_it_would_be_shown(hf: Client, canary: str) -> None:
    process = hf.run("read -p 'shown: ' x; echo got it", pty=True).id
    eventually(lambda: hf.inspect(process).needs_input)
    before = time.monotonic()
    with pytest.raises(NotNow, match="shows what is typed"):
        hf.send(process, canary, secret=True)
    assert time.monotonic() - before < 20
    done = run_cli("send", process, "--secret", input=canary.encode())
    assert done.returncode == 125 and done.stderr.count(b"\n") == 1 and b"--even-if-echoed" in done.stderr
    assert canary not in hf.logs(process).text
    assert run_cli("send", process, "--secret", "--even-if-echoed", input=canary.encode()).returncode == 0
    eventually(lambda: "got it" in hf.logs(process).text)


def test_a_shell_that_edits_its_own_line_is_not_trusted_with_it(hf: Client, canary: str) -> None:
    shell = hf.run(["bash", "--norc", "-i"], pty=True).id
    eventually(lambda: "$ " in hf.logs(shell).text or "# " in hf.logs(shell).text)
    with pytest.raises(NotNow):
        hf.send(shell, canary, secret=True)
    assert canary not in hf.logs(shell).text


def test_a_password_sent_early_waits_until_echo_is_off(hf: Client, canary: str) -> None:
    slow = f"import time; print('soon', flush=True); time.sleep(0.7); {ASK}"
    process = hf.run([sys.executable, "-c", slow], pty=True).id
    eventually(lambda: "soon" in hf.logs(process).text)
    assert hf.send(process, canary, secret=True)["status"] == "sent"
    eventually(lambda: got(hf, process, canary))
    assert canary not in hf.logs(process).text


def test_a_model_types_no_secrets(hf: Client) -> None:
    process = asking(hf)
    with (
        holdfast.connect(session="person", strict=True) as model,
        pytest.raises(Denied, match="only the user may type") as refused,
    ):
        model.send(process, "guess", secret=True)
    assert f"holdfast send {process} --secret" in refused.value.next


def test_over_http_it_is_the_same(hf: Client, instance: Path, canary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    process = asking(hf)
    monkeypatch.setenv("HOLDFAST_URL", hf.http("open")["url"])
    with holdfast.connect(session="agent", strict=True) as model, pytest.raises(holdfast.NotFound):
        model.send(process, canary, secret=True)
    with holdfast.connect(session="person", strict=True) as model, pytest.raises(Denied):
        model.send(process, canary, secret=True)
    with holdfast.connect(session="person") as over_http:
        assert over_http.send(process, canary, secret=True)["status"] == "sent"
    eventually(lambda: got(hf, process, canary))
    check_no_trace(hf, instance, canary)


def test_misuse_is_one_line(instance: Path) -> None:
    process = start("-t", "--", "sleep", "1000")
    assert "prompts for TEXT" in refusal("send", process, "hunter2", "--secret")
    refusal("send", process, "--even-if-echoed")
    refusal("send", process, "--secret", "--eof")
    assert "stdin is empty" in refusal("send", process, "--secret")
    done = run_cli("send", process, "--secret", input=b"x" * (1 << 20))
    assert done.returncode == 125 and b"too long" in done.stderr


def test_to_one_that_has_ended_nothing_is_typed(hf: Client, canary: str) -> None:
    process = hf.run(["true"], pty=True).id
    hf.wait(process)
    assert hf.send(process, canary, secret=True)["status"] == "already_exited"


def test_a_password_is_typed_only_where_one_is_asked_for(hf: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(holdfast.NoApprover) as refused:
        hf.run(RISKY, gate=True)
    assert refused.value.data is not None
    request = refused.value.data["approval"]["id"]
    for url in (None, hf.http("open")["url"]):
        monkeypatch.setenv("HOLDFAST_URL", url) if url else None
        with holdfast.connect(session="person") as client, holdfast.connect(session="person", strict=True) as model:
            with pytest.raises(holdfast.BadValue, match="asks for no password"):
                client.approval_password(request, "open")
            with pytest.raises(holdfast.NotFound):
                client.approval_password("appr_000000000000", "open")
            with pytest.raises(Denied, match="only the user may type"):
                model.approval_password(request, "open")
