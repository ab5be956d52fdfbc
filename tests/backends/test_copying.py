"""`holdfast cp` to and from a container without Python: both ways, by process, task and backend."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.calling import as_json, out, refusal
from tests.contracts.engines import IMAGE, TestEngine, close_engines, engine
from tests.support import eventually, run_cli

_MEBI = 1 << 20


@pytest.fixture(scope="module")
def podman() -> Iterator[TestEngine]:
    yield engine("podman")
    close_engines()


@pytest.fixture
def web(home: Path, podman: TestEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A process in a container, in /tmp."""
    for name, value in podman.environ.items():
        monkeypatch.setenv(name, value)
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(f'[backends.podman]\nimage = "{IMAGE}"\nnetwork = "none"\n')
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    yield out("run", "-d", "--name", "web", "--backend", "podman", "--task", "t", "-w", "/tmp", "sleep", "1000").strip()
    out("kill", "--all", "--grace", "0.1")
    podman.remove_all()


def inside(*words: str) -> str:
    return out("exec", "web", "--", *words)


@pytest.mark.full
def test_files_and_directories_by_each_name_of_the_place(web: str) -> None:
    tree = Path("tree")
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "größe\n").write_bytes(os.urandom(3 * _MEBI))
    (tree / "sub" / "größe\n").chmod(0o741)
    (tree / "link").symlink_to("sub")
    assert as_json("cp", "--json", "tree", "web:copy") == {"path": "/tmp/copy", "files": 2, "bytes": 3 * _MEBI}
    assert inside("stat", "-c", "%a", "copy/sub/größe\n").strip() == "741"
    out("cp", "web:copy", "back")
    assert Path("back/sub/größe\n").read_bytes() == (tree / "sub" / "größe\n").read_bytes()
    assert os.readlink("back/link") == "sub"
    for place in (web, "task/t", "podman"):
        assert run_cli("cp", "-", f"{place}:/tmp/stamp", input=place.encode()).returncode == 0
        assert inside("cat", "/tmp/stamp") == place
        assert run_cli("cp", f"{place}:/etc/group", "-").stdout.startswith(b"root:")
    assert run_cli("cp", "-", "web:~/from-home", input=b"h").returncode == 0
    assert inside("cat", "/root/from-home") == "h"
    assert "/missing: there is no such file" in refusal("cp", "web:/missing", "x")
    assert "there is no such directory" in refusal("cp", "tree", "web:/missing/x")


@pytest.mark.full
def test_a_client_that_is_killed_leaves_the_old_file_there(web: str) -> None:
    assert run_cli("cp", "-", "web:target", input=b"old").returncode == 0
    cp = [sys.executable, "-m", "holdfast", "cp", "-", "web:target"]
    with subprocess.Popen(cp, stdin=subprocess.PIPE) as copy:
        assert copy.stdin is not None
        copy.stdin.write(bytes(_MEBI))
        copy.stdin.flush()
        eventually(lambda: "holdfast-cp" in inside("ls", "-A"), pause=0.2)
        copy.kill()
    eventually(lambda: "holdfast-cp" not in inside("ls", "-A"), pause=0.2)
    assert inside("cat", "target") == "old"
