"""A command that may run cannot have everything else run, or approved, by calling holdfast itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast import Client, NoApprover
from tests.approvals.surfaces import RISKY
from tests.support import eventually

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


def test_what_a_person_started_is_not_bound(hf: Client) -> None:
    with pytest.raises(NoApprover) as refused:
        hf.run(RISKY, gate=True)
    assert refused.value.data is not None
    request = refused.value.data["approval"]["id"]
    with holdfast.connect() as person:
        process = person.run(f"{HOLDFAST} approve {request}")
        assert person.wait(process.id, timeout=30).exit_code == 0


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
