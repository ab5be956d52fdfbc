"""An upgrade while 50 processes run: `holdfast daemon restart` loses none of them, and both releases answer meanwhile.

`releases/*.tar.xz` holds the packages of an earlier state, as `git archive COMMIT src/holdfast src/holdfast_keeper`
wrote them. They do not change later: every later release takes over from them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import threading
import venv
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from holdfast.version import VERSION
from tests.support import eventually, is_alive
from tests.upgrade.test_in_place import newer_release

PREVIEW = Path(__file__).parent / "releases" / "v0.1.0-preview.tar.xz"
COUNT = 50

#: Run by the older release: processes of several kinds, each of which ends with its own code when the file is there.
_START = """
import json, sys, holdfast
go_on, count = sys.argv[1], int(sys.argv[2])
with holdfast.connect("chat-42") as hf:
    for number in range(count):
        text = f"seq 1 100; until [ -e {go_on} ]; do sleep 0.1; done; seq 101 200; exit {number}"
        lifetime = "daemon" if number == 7 else "detached"
        kind = {"pty": number % 10 == 3, "stdin": number % 10 == 4, "lifetime": lifetime}
        hf.run(text, name=f"job-{number}", log_cap=1 << 20, **kind)
    print(json.dumps(hf.status()))
"""


class Release(NamedTuple):
    """A release that is installed in an environment of its own."""

    interpreter: Path
    version: str

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.interpreter), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)

    def __call__(self, *words: str) -> Any:
        """The JSON that `holdfast WORDS --json` prints."""
        done = self.python("-m", "holdfast", *words, "--json")
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def said(self, *words: str) -> str:
        """What `holdfast WORDS` writes to stderr."""
        done = self.python("-m", "holdfast", *words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stderr


def installed(where: Path, source: Path, version: str) -> Release:
    """A release from this source, with the other packages of this environment."""
    venv.create(where, symlinks=True, with_pip=False)
    (packages,) = where.glob("lib/python3*/site-packages")
    others = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "release.pth").write_text("\n".join([str(source), *others]))
    return Release(where / "bin" / "python", version)


def preview(where: Path) -> Release:
    with tarfile.open(PREVIEW) as packed:
        if hasattr(tarfile, "fully_trusted_filter"):  # Python 3.11.4 and newer; required from 3.14 on
            packed.extraction_filter = tarfile.fully_trusted_filter
        packed.extractall(where)
    (where / "src" / "holdfast" / "version.py").write_text('VERSION = "0.0.9"\n')
    return installed(where / "venv", where / "src", "0.0.9")


def this_release() -> Release:
    return Release(Path(sys.executable), VERSION)


def next_release(where: Path) -> Release:
    return installed(where / "venv", newer_release(where / "src"), "99.0.0")


@contextmanager
def answering(*releases: Release) -> Iterator[None]:
    """Clients of these releases ask all the time, and every one of them gets every process."""
    is_over = threading.Event()
    failures: list[object] = []
    asked = Counter[str]()

    def ask(release: Release) -> None:
        while not is_over.is_set():
            try:
                assert len(release("ps", "-a")) == COUNT
            except Exception as failed:  # noqa: BLE001 - shown by the main thread
                failures.append(failed)
                return
            asked[release.version] += 1

    threads = [threading.Thread(target=ask, args=(release,)) for release in releases]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: failures or all(asked[release.version] for release in releases), timeout=60)
        yield
        so_far = Counter(asked)
        eventually(lambda: failures or all(asked[one.version] > so_far[one.version] for one in releases), timeout=60)
    finally:
        is_over.set()
        for thread in threads:
            thread.join(90)
    assert failures == []


def check_ends(release: Release, go_on: Path) -> None:
    """All of them end with their own code, all of their output is there, and one notification of each."""
    go_on.touch()
    eventually(lambda: not release("ps"), timeout=60)
    ended = {process["name"]: process for process in release("ps", "-a")}
    assert {name: process["exit_code"] for name, process in ended.items()} == {
        f"job-{number}": number for number in range(COUNT)
    }
    assert {process["reason"] for process in ended.values()} == {"exited"}
    whole = "".join(f"{number}\n" for number in range(1, 201))
    for number in (0, 3, 4, 7, COUNT - 1):
        assert release.python("-m", "holdfast", "logs", f"job-{number}").stdout == whole
    notices = Counter(notice["process"] for notice in release("inbox", "--session", "chat-42"))
    assert notices == Counter(process["id"] for process in ended.values())


def start(release: Release, go_on: Path) -> dict[str, Any]:
    done = release.python("-c", _START, str(go_on), str(COUNT))
    assert done.returncode == 0, done.stderr
    status = json.loads(done.stdout)
    assert status["version"] == release.version
    return dict(status)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_preview_is_upgraded_under_50_processes(home: Path, tmp_path: Path) -> None:
    old, new, go_on = preview(tmp_path / "old"), this_release(), tmp_path / "go-on"
    before = start(old, go_on)
    assert f"the daemon (0.0.9), with keeper and anchor, is older than this command ({VERSION})" in new.said("ps")
    assert "holdfast daemon restart" in new.said("version")
    assert "holdfast daemon restart" in new.said("doctor")
    with answering(old, new):
        after = new("daemon", "restart")
    assert after["version"] == VERSION
    assert after["processes"] == COUNT
    assert not is_alive(before["pid"])
    assert (after["keeper_pid"], after["anchor_pid"]) == (before["keeper_pid"], before["anchor_pid"])
    assert "keeper and anchor are older" in new.said("ps")
    check_ends(new, go_on)
    new("daemon", "restart")
    assert new("version")["keeper"] == VERSION
    assert new.said("ps") == ""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_daemon_keeper_and_anchor_are_upgraded_under_50_processes(home: Path, tmp_path: Path) -> None:
    old, new, go_on = this_release(), next_release(tmp_path / "new"), tmp_path / "go-on"
    before = start(old, go_on)
    with answering(old, new):
        after = new("daemon", "restart")
    assert (after["version"], after["keeper_version"]) == ("99.0.0", "99.0.0")
    assert after["processes"] == COUNT
    assert after["keeper_pid"] != before["keeper_pid"]
    assert after["anchor_pid"] == before["anchor_pid"], "it is the parent of every command"
    assert new.said("ps") == ""
    new.python("-m", "holdfast", "send", "job-4", "some input")
    check_ends(new, go_on)
    again = new("daemon", "restart")
    assert again["anchor_pid"] != before["anchor_pid"], "it exited when no process was left"
