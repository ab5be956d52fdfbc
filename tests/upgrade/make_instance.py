"""Writes a whole instance as this release leaves it behind: `python -m tests.upgrade.make_instance NAME`.

It is left as by a crash: everything was killed while one command ran. `instances/NAME.tar.xz` holds its files and
`instances/NAME.json` what was answered when it was opened again. Neither changes later: every later release opens them.
"""

from __future__ import annotations

import json
import os
import sys
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import holdfast
from tests.support import end_instance, eventually, kill_instance, run_cli

INSTANCES = Path(__file__).parent / "instances"
_SESSION = "chat-42"
#: Whatever is in it stays, however old it is.
_CONFIG = "".join(f"{name} = 1e10\n" for name in ("keep_ended", "keep_events", "keep_notices", "approval_keep"))
_ENVIRON = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
#: The machine's, not the instance's: sockets, logs, and the environment of whoever made it.
_LEFT_OUT = {"login-env.json", "daemon.log", "keeper.log", "start.lock", "daemon.lock", "keeper.lock"}
#: Differ each time it is opened: when, and with which cgroup, the command that was running was found to be gone.
_OF_THE_OPENING = {"at", "ended_at", "hash", "seq", "expires_at", "cpu_seconds", "rss_bytes", "peak_rss_bytes"}
#: What is asked: the words after `holdfast`.
QUESTIONS: dict[str, tuple[str, ...]] = {
    "ps": ("ps", "-a", "--json"),
    "inbox": ("inbox", "--session", _SESSION, "--json"),
    "approvals": ("approvals", "--all", "--json"),
    "audit": ("audit", "--json"),
}


def answers(home: Path) -> dict[str, Any]:
    """What an instance answers, without what depends on when it is opened."""
    eventually(lambda: not json.loads(_call(home, "ps", "--json")))  # what was running is found to be gone
    found: dict[str, Any] = {}
    for name, words in QUESTIONS.items():
        found[name] = [_lasting(one) for one in json.loads(_call(home, *words))]
    found["inbox"] = sorted(found["inbox"], key=lambda one: str(one["key"]))
    found["logs"] = {one["id"]: _call(home, "logs", "--raw", one["id"]) for one in found["ps"]}
    found["screen"] = [_call(home, "screen", one["id"]) for one in found["ps"] if one["pty"]]
    found["events"] = [
        event["type"] for event in map(json.loads, _call(home, "events", "process.*", "--json").splitlines())
    ]
    _call(home, "audit", "--verify")
    return found


def _lasting(document: dict[str, Any]) -> dict[str, Any]:
    """`text` is prose, and may be reworded."""
    data = document.get("data")
    kept = {key: value for key, value in document.items() if key not in _OF_THE_OPENING | {"text"}}
    return {**kept, "data": _lasting(data)} if isinstance(data, dict) else kept


def _call(home: Path, *words: str) -> str:
    done = run_cli(*words, env={"HOLDFAST_HOME": str(home)})
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout.decode()


def unpack(archive: Path, home: Path) -> None:
    with tarfile.open(archive) as found:
        if hasattr(tarfile, "fully_trusted_filter"):  # Python 3.11.4 and newer; required from 3.14 on
            found.extraction_filter = tarfile.fully_trusted_filter
        found.extractall(home)
    home.chmod(0o700)


def make(home: Path) -> None:
    """Ended, failed and running commands, a terminal, a watch that matched, a pending approval and a given one."""
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(_CONFIG)
    usual: dict[str, Any] = {"environ": _ENVIRON, "cwd": "/", "log_cap": 1 << 20}
    with holdfast.connect(_SESSION, home=home) as hf:
        done = hf.run("echo one; echo two >&2; exit 0", name="build", split=True, labels={"key": "ü"}, **usual)
        hf.run("echo failed; exit 3", name="test", origin={"chat": 7}, **usual)
        terminal = hf.run("printf 'colour \\033[1mbold\\033[0m\\n'; stty size", pty=True, size=(100, 30), **usual)
        watched = hf.run("echo listening on 80; exec sleep 1000", watch=["listening"], name="web", task="t", **usual)
        hf.run("echo started; exec sleep 1000", name="server", lifetime="detached", memory="1G", **usual)
        hf.wait([done.id, terminal.id])
        eventually(lambda: {"completion", "watch_match"} <= {notice.kind for notice in hf.inbox()})
        hf.kill(watched.id, grace=0.1)
        for command in ("git -C /nonexistent reset --hard", "git -C /nonexistent clean -fdx"):
            with suppress(holdfast.HoldfastError):
                hf.run(command, gate=True, approval_wait=0.0, **usual)
        hf.approve(hf.approvals()[0], "session", by="tester")
        eventually(lambda: (home / "place" / "done" / terminal.id).exists())
    kill_instance(str(home))
    place = home / "place" / "place.json"
    place.write_text(place.read_text().replace(sys.executable, "/usr/bin/python3"))


def pack(home: Path, archive: Path) -> None:
    with tarfile.open(archive, "w:xz") as made:
        made.add(home, arcname="", filter=_kept)


def _kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if os.path.basename(member.name) in _LEFT_OUT or member.name.endswith(".sock"):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def main(name: str) -> None:
    archive = INSTANCES / f"{name}.tar.xz"
    if archive.exists():
        raise SystemExit(f"{archive} is there already: what a release left behind does not change")
    INSTANCES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="upgrade-") as directory:
        os.environ.clear()  # nothing of its maker's environment gets into the files
        os.environ.update(_ENVIRON, HOME=directory)
        made, opened = Path(directory) / "made", Path(directory) / "opened"
        try:
            make(made)
            pack(made, archive)
            unpack(archive, opened)
            text = json.dumps(answers(opened), indent=1, sort_keys=True, ensure_ascii=False)
            archive.with_suffix("").with_suffix(".json").write_text(f"{text}\n", encoding="utf-8")
        finally:
            end_instance(str(made))
            end_instance(str(opened))


if __name__ == "__main__":
    main(sys.argv[1])
