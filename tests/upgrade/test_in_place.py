"""A newer release takes over while commands run, and they do not notice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import holdfast
from holdfast.client.sync import connect
from tests.daemon.acting import is_alive
from tests.support import eventually


def newer_release(where: Path) -> Path:
    """The package as it would be after an upgrade: the same, but for its version."""
    package = Path(holdfast.__file__).parent
    shutil.copytree(package, where / "holdfast", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(package.parent / "holdfast_keeper", where / "holdfast_keeper")
    version = where / "holdfast" / "version.py"
    version.write_text(version.read_text().replace(f'VERSION = "{holdfast.__version__}"', 'VERSION = "99.0.0"'))
    return where


def start_daemon(source: Path) -> subprocess.Popen[bytes]:
    """A daemon from that source, ready."""
    read, write = os.pipe()
    environ = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-m", "holdfast.daemon", "--ready-fd", str(write)]
    daemon = subprocess.Popen(command, env=environ, pass_fds=[write], start_new_session=True)
    os.close(write)
    assert os.read(read, 4096) == b"ready\n"
    os.close(read)
    return daemon


def test_a_newer_daemon_takes_over_from_an_older_one_and_its_keeper(home: Path, tmp_path: Path) -> None:
    source = newer_release(tmp_path / "newer")
    with connect() as hf:
        go_on = tmp_path / "go-on"
        half = f"seq 1 100; until [ -e {go_on} ]; do sleep 0.05; done; seq 101 200; exit 7"
        process = hf.run(half, name="job")
        before = hf.status()
        hf.stop_daemon()
        eventually(lambda: not is_alive(before["pid"]))
        daemon = start_daemon(source)
        after = hf.status()
        assert (before["version"], after["version"]) == (holdfast.__version__, "99.0.0")
        assert after["anchor_pid"] == before["anchor_pid"], (
            "the new keeper has the same parent, and so the same children"
        )
        assert after["keeper_version"] == "99.0.0"
        assert hf.inspect("job").pid == process.pid
        go_on.touch()
        assert hf.wait(process.id, timeout=30).exit_code == 7
        assert hf.logs(process.id).text == "".join(f"{number}\n" for number in range(1, 201))
        hf.stop_daemon()
        assert daemon.wait(30) == 0
