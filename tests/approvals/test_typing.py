"""Typing into a shell is no way around the gate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Client, CommandDenied, NoApprover, Process
from tests.approvals.surfaces import NEVER, RISKY
from tests.daemon.acting import kill_daemon
from tests.support import eventually


@pytest.fixture
def hf(home: Path) -> Iterator[Client]:
    with holdfast.connect(session="agent", strict=True) as client:
        yield client


def shell(hf: Client, command: str = "bash", **options: Any) -> Process:
    return hf.run(command, stdin=True, **options)


def says(hf: Client, process: Process, text: str) -> bool:
    return bool(eventually(lambda: text in hf.logs(process).text))


def test_a_risky_line_asks_and_a_harmless_one_passes(hf: Client) -> None:
    process = shell(hf)
    hf.send(process, "echo o''ne")
    assert says(hf, process, "one")
    with pytest.raises(NoApprover) as refused:
        hf.send(process, RISKY)
    assert refused.value.data is not None
    request = refused.value.data["approval"]
    assert (request["action"], request["process"], request["command"]) == ("send", process.id, f"{RISKY}\n")
    with pytest.raises(CommandDenied):
        hf.send(process, NEVER)
    hf.send(process, "y")
    hf.send(process, "echo t''wo")
    assert says(hf, process, "two")


def test_an_approved_line_is_typed_once(hf: Client) -> None:
    process = shell(hf)
    with pytest.raises(NoApprover) as refused:
        hf.send(process, f"{RISKY}; echo d''one")
    assert refused.value.data is not None
    with holdfast.connect() as person:
        person.approve(refused.value.data["approval"]["id"])
    hf.send(process, f"{RISKY}; echo d''one")
    assert says(hf, process, "done")
    with pytest.raises(NoApprover):
        hf.send(process, f"{RISKY}; echo d''one")


def test_a_line_in_two_writes_is_one_line(hf: Client) -> None:
    process = shell(hf)
    hf.send(process, RISKY[:20], enter=False)
    with pytest.raises(NoApprover) as refused:
        hf.send(process, RISKY[20:])
    assert refused.value.data is not None
    assert refused.value.data["approval"]["command"] == f"{RISKY}\n"


def test_also_when_the_daemon_is_killed_between_them(hf: Client) -> None:
    process = shell(hf)
    hf.send(process, RISKY[:20], enter=False)
    kill_daemon(hf)
    with pytest.raises(NoApprover):
        hf.send(process, RISKY[20:])


@pytest.mark.parametrize("command", ["sh", "exec bash --norc", "cd / && bash", "python3 -i", "env X=1 bash"])
def test_input_of_programs_that_read_like_a_shell_is_judged(hf: Client, command: str) -> None:
    process = shell(hf, command, pty=True)
    with pytest.raises((NoApprover, CommandDenied)):
        hf.send(process, f"import os; os.system({RISKY!r})" if "python" in command else RISKY)


def test_a_shell_that_a_script_starts_is_found(hf: Client, tmp_path: Path) -> None:
    script = tmp_path / "tool"
    script.write_text("#!/bin/sh\necho up\nexec bash\n")
    script.chmod(0o700)
    process = shell(hf, str(script))
    assert says(hf, process, "up")
    eventually(lambda: _asks(hf, process))


def _asks(hf: Client, process: Process) -> bool:
    try:
        hf.send(process, RISKY)
    except NoApprover:
        return True
    return False


def test_answers_to_other_programs_pass(hf: Client) -> None:
    process = shell(hf, "read -r line; echo got $line")
    hf.send(process, f"it's fine; {RISKY}")
    assert says(hf, process, "got it's fine")


def test_input_of_a_user_is_not_judged(hf: Client) -> None:
    process = shell(hf)
    with holdfast.connect() as person:
        person.send(process, f"{RISKY}; echo d''one")
    assert says(hf, process, "done")
