"""A user of this machine, made for the tests and removed afterwards, who may use sudo with a password."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import end_instance
from tests.takeover.someone import Someone


@pytest.fixture(scope="module")
def someone() -> Iterator[Someone]:
    if os.geteuid() != 0:
        pytest.skip("only root can make a user")
    name = f"hf{os.getpid()}"
    # Not below pytest's directory, which others cannot enter.
    home = Path(tempfile.mkdtemp(prefix="holdfast-"))
    home.chmod(0o711)
    rules = Path(f"/etc/sudoers.d/{name}")
    try:
        subprocess.run(["useradd", "--no-create-home", "--home-dir", str(home), name], check=True)
        someone = Someone(name, home)
        someone.set_password()
        rules.write_text(f"{name} ALL=(ALL) ALL\n{name} ALL=(ALL) NOPASSWD: /bin/true, /usr/bin/true\n")
        rules.chmod(0o440)
        yield someone
    finally:
        rules.unlink(missing_ok=True)
        for instance in home.glob("instance*"):
            end_instance(str(instance))
        subprocess.run(["userdel", "--force", name], check=False, capture_output=True)
        for left in ("/var/lib/sudo/lectured", "/run/sudo/ts"):
            Path(left, name).unlink(missing_ok=True)
        shutil.rmtree(home)
