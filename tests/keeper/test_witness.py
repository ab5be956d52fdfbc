"""The line between spare and keeper: it ends when the exec can no longer fail, and carries the reason when it did."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from holdfast_keeper.witness import Witness
from tests.keeper.driver import ONE, Family, Refused
from tests.support import eventually


def test_the_line_ends_with_the_exec_though_the_command_inherits_everything() -> None:
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


def test_last_words_arrive_after_the_line_was_left() -> None:
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


def test_the_command_has_only_the_three_standard_descriptors(family: Family) -> None:
    family.start(ONE, "ls /proc/self/fd | wc -l")  # the fourth is ls's own
    family.complete(ONE)
    assert family.output(ONE) == b"4\n"


def test_an_exec_that_fails_late_leaves_nothing_behind(family: Family, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/nowhere/interpreter\n")
    script.chmod(0o755)
    with pytest.raises(Refused):
        family.start(ONE, [str(script)])
    assert not os.path.exists(f"{family.place}/live/{ONE}")
