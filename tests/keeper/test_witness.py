"""The connection from spare to keeper: closed when the exec can no longer fail, and used to report why it failed."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from holdfast_keeper.witness import Witness
from tests.keeper.driver import ONE, KeeperPair, Refused
from tests.support import eventually


def test_the_connection_is_closed_by_the_exec_despite_inherited_descriptors() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        ours.close()
        witness = Witness(theirs)
        witness.leave_line()
        os.execv("/bin/sleep", ["sleep", "30"])
    theirs.close()
    with ours:
        ours.settimeout(10)
        assert ours.recv(100) == b""
    eventually(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
    assert os.listdir(f"/proc/{pid}/task") == [str(pid)]
    os.kill(pid, 9)
    os.waitpid(pid, 0)


def test_a_failure_is_reported_after_the_connection_was_left() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        ours.close()
        witness = Witness(theirs)
        witness.leave_line()
        try:
            os.execv("/nowhere", ["nowhere"])
        except OSError:
            witness.report_failure(b"no")
        os._exit(0)
    theirs.close()
    with ours:
        ours.settimeout(10)
        assert ours.recv(100) == b"no"
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 127


def test_the_command_has_only_the_three_standard_descriptors(pair: KeeperPair) -> None:
    pair.start(ONE, "ls /proc/self/fd | wc -l")  # the fourth is ls's own
    pair.complete(ONE)
    assert pair.output(ONE) == b"4\n"


def test_an_exec_that_fails_late_leaves_nothing_behind(pair: KeeperPair, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/nowhere/interpreter\n")
    script.chmod(0o755)
    with pytest.raises(Refused):
        pair.start(ONE, [str(script)])
    assert not os.path.exists(f"{pair.place}/live/{ONE}")
