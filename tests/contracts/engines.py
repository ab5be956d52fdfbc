"""What tests of containers need: a root directory with busybox and nothing else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

#: The programs that tests run in a root without anything else.
_APPLETS = (
    *("cat", "chmod", "cp", "dd", "echo", "env", "false", "grep", "head", "id", "kill", "ls", "mkdir", "mount", "mv"),
    *("nc", "printf", "ps", "pwd", "readlink", "rm", "seq", "setsid", "sh", "sleep", "stat", "stty", "test", "touch"),
    *("tr", "true", "tty", "umask", "uname", "wc", "yes"),
)


def needs(program: str) -> str:
    """The path of a program; the test is skipped where it is missing, which is a failure in CI."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed; scripts/test installs it when root")
    return found


def make_root(directory: Path) -> Path:
    """A root directory with busybox, without Python and without a C library."""
    busybox = needs("busybox")
    for name in ("bin", "etc", "proc", "tmp", "root", "dev", "sys", "var/empty"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    (directory / "tmp").chmod(0o1777)
    shutil.copy(busybox, directory / "bin/busybox")
    for name in _APPLETS:
        os.symlink("busybox", directory / "bin" / name)
    (directory / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nme:x:1234:1234::/tmp:/bin/sh\n")
    (directory / "etc/group").write_text("root:x:0:\nme:x:1234:\n")
    return directory
