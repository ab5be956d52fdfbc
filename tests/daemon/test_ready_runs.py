"""Each run of a process is looked at anew."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from holdfast.client.sync import Client
from tests.daemon.acting import kill_daemon
from tests.support import eventually


def test_each_run_becomes_ready_by_what_it_writes_itself(hf: Client, tmp_path: Path) -> None:
    slow = f"[ -e {tmp_path}/again ] && until [ -e {tmp_path}/go ]; do sleep 0.01; done"
    process = hf.run(
        f"{slow}; touch {tmp_path}/again; echo ready; sleep 60",
        ready_log="^ready$",
        restart="always",
        restart_delay=1.0,
    )
    first = hf.wait(process.id, until="ready", timeout=60)
    assert first.ready is True
    os.kill(first.pid or 0, signal.SIGKILL)
    eventually(lambda: hf.inspect(process.id).restart_at)
    assert hf.inspect(process.id).ready is None
    eventually(lambda: hf.inspect(process.id).restarts == 1)
    assert hf.wait(process.id, until="ready", timeout=0.5).ready is None
    kill_daemon(hf)
    assert hf.wait(process.id, until="ready", timeout=0.5).ready is None
    (tmp_path / "go").touch()
    second = hf.wait(process.id, until="ready", timeout=60)
    assert second.ready is True
    assert (second.ready_at or 0) > (first.ready_at or 0)


def test_a_match_may_come_in_a_later_run(hf: Client, tmp_path: Path) -> None:
    command = f"[ -e {tmp_path}/again ] && echo found it; touch {tmp_path}/again; exit 3"
    process = hf.run(command, restart="on-failure", restart_limit=1, restart_delay=0.2)
    waited = hf.wait(process.id, until="match", match="found", after=0, timeout=20)
    assert waited.match is not None
    assert waited.match.text == "found it"
