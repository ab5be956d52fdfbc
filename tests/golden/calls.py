"""Every call of the blocking client, made once with nothing but what it needs and once with every option."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import holdfast
from holdfast import Client, HoldfastError
from tests.golden.relay import Record, relaying
from tests.sinks.receiver import Plan, Receiver, receiving
from tests.support import end_instance, eventually

#: Asks by the rules that come with holdfast, and does nothing.
_ASKS = "git -C /nonexistent reset --hard"
#: Ctrl-]
_DETACH = b"\x1d"
_EVERY_RUN_OPTION: dict[str, Any] = {
    "name": "x",
    "session": "s",
    "task": "t",
    "labels": {"a": "b"},
    "parent_session": "p",
    "cwd": "/",
    "env": {"A": "1"},
    "environ": {"PATH": "/bin"},
    "pty": True,
    "size": (80, 24),
    "stdin": True,
    "split": True,
    "lifetime": "daemon",
    "log_cap": "1M",
    "deadline": 60.0,
    "deadline_action": "notify",
    "if_running": "allow",
    "shell": "/bin/sh",
    "attached": True,
    "restart": "always",
    "restart_limit": 1,
    "restart_delay": 1.0,
    "success_codes": [3],
    "stop_cmd": "true",
    "ready_log": "up",
    "ready_port": 1,
    "ready_http": "http://127.0.0.1",
    "ready_uptime": 1.0,
    "ready_timeout": 1.0,
    "stall": 60.0,
    "memory": "1G",
    "cpus": 1.0,
    "pids": 10,
    "notify": "any",
    "watch": ["w"],
    "watch_regex": ["r"],
    "check_interval": 60.0,
    "origin": {"o": 1},
    "clean": True,
    "gate": True,
    "sudo": True,
    "asker": True,
    "approval_wait": 1.0,
}
#: Of the object, or of this program, and not of the daemon.
NO_REQUEST = {"close", "open_link", "session", "is_strict", "paths"}


class Recorded:
    """What was seen: see `Record`; `events` and `notices` have the fields by topic and by kind."""

    def __init__(self, record: Record, events: list[dict[str, Any]], notices: list[dict[str, Any]]) -> None:
        self.requests = {call: sorted(map(list, frames)) for call, frames in record.requests.items()}
        self.replies = {op: sorted(names) for op, names in record.replies.items()}
        self.events = _fields_by(events, "type", lambda event: event)
        self.notices = _fields_by(notices, "kind", lambda notice: notice["data"])
        self.notice = sorted({name for notice in notices for name in notice})


def _fields_by(
    documents: list[dict[str, Any]], key: str, part: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for document in documents:
        found.setdefault(document[key], set()).update(part(document))
    return {name: sorted(fields) for name, fields in found.items()}


def record_calls(directory: Path) -> Recorded:
    """Make every call against an instance of its own below `directory`."""
    home, front, record = directory / "home", directory / "front", Record()
    home.mkdir(mode=0o700)
    with receiving() as receiver:
        receiver.usual = Plan(status=500)
        sink = f'[[sinks]]\nname = "hook"\nwebhook = "{receiver.url}"\nsessions = ["paged"]\ntries = 1\n'
        (home / "config.toml").write_text(sink)
        try:
            with holdfast.connect("golden", home=home) as direct, relaying(front, home, record):
                with holdfast.connect("golden", home=front) as client:
                    notices = _Session(client, direct, record, receiver).make()
                events = [dict(event) for event in direct.events()]
                with holdfast.connect("golden", home=front) as client, _naming(record, "stop_daemon"):
                    client.stop_daemon()
        finally:
            end_instance(str(home))
    return Recorded(record, events, notices)


@contextmanager
def _naming(record: Record, call: str) -> Iterator[None]:
    record.call = call
    yield
    record.call = "connection"


class _Session:
    def __init__(self, client: Client, direct: Client, record: Record, receiver: Receiver) -> None:
        self._client = client
        self._direct = direct
        self._record = record
        self._receiver = receiver

    def make(self) -> list[dict[str, Any]]:
        """The notifications that were there at the end."""
        self._processes()
        self._output()
        self._terminal()
        self._approvals()
        notices = self._notices()
        self._sinks()
        self._sessions()
        self._daemon()
        return notices

    def _do(self, call: str, *arguments: Any, **options: Any) -> Any:
        with _naming(self._record, call):
            return getattr(self._client, call)(*arguments, **options)

    def _read(self, call: str, *arguments: Any, **options: Any) -> list[Any]:
        with _naming(self._record, call):
            return list(getattr(self._client, call)(*arguments, **options))

    def _refused(self, call: str, *arguments: Any, **options: Any) -> None:
        with suppress(HoldfastError):
            self._do(call, *arguments, **options)

    def _processes(self) -> None:
        job = self._do("run", "echo one; exit 3", labels={"key": "value"}, task="t")
        self._do("foreground", "echo one", timeout=10.0)
        self._refused("run", ["true"], **_EVERY_RUN_OPTION)
        self._do("wait", job.id)
        self._do("wait_for", [job.id], timeout=10, any=True, until="match", after=0, match="one", ignore_case=True)
        self._do("wait_for", [job.id], or_input=0.0)
        self._do("wait_for", [job.id], until="output", after=0)
        server = self._do(
            "run", "echo up; exec sleep 1000", ready_log="up", memory="1G", origin={"chat": 7}, stdin=True
        )
        self._do("wait", [server.id], until="ready")
        eventually(lambda: self._direct.inspect(server.id).cpu_seconds is not None)
        self._do("ps")
        self._do("ps", all=True, session="golden", task="t", used=False)
        seen = self._do("inspect", server.id, tree=True, spec=True)
        self._do("look", server.id, seen.seen)
        self._do("top")
        self._do("why", server.id)
        self._do("counts", session="golden", task="t")
        self._do("send", server.id, "text", secret=True, even_if_echoed=True, asker=True, approval_wait=1.0)
        self._do("send", server.id, eof=True)
        self._do("restart", server.id, grace=0.1, asker=True, approval_wait=1.0)
        self._until_notified("ready")  # the wait above was the notification of the first run
        self._do("kill", server.id, signal="CONT")
        self._do("exec", server.id, "true")
        every = {"name": "e", "session": "golden", "env": {"A": "1"}, "pty": True, "size": (80, 24), "stdin": True}
        more = {"gate": True, "shell": "/bin/sh", "attached": True, "asker": True, "approval_wait": 1.0}
        self._refused("exec", server.id, ["true"], **every, **more)
        self._do("kill", session="golden", grace=0.1)
        self._do("kill", task="nothing")
        self._do("kill", all=True)
        again = self._do("run", "exit 3", restart="on-failure", restart_limit=1, restart_delay=0.01)
        self._do("wait", again.id)
        late = self._do("run", "exec sleep 1000", ready_log="never", ready_timeout=0.05, stall=60.0, deadline=1.5)
        eventually(lambda: self._has_seen("process.not_ready"))
        self._do("wait", late.id)
        warned = self._do("run", "exec sleep 1000", deadline=0.05, deadline_action="notify", stall=1.0, name="warned")
        eventually(lambda: self._direct.inspect(warned.id).stalled)
        eventually(lambda: self._has_seen("process.deadline"))
        self._do("kill", warned.id, grace=0.1)
        self._do("remove", again.id)
        self._do("remove", all=True)

    def _output(self) -> None:
        job = self._do("run", "echo one; echo two >&2; echo three", split=True)
        self._do("wait", job.id)
        self._do("logs", job.id)
        self._do("logs", job.id, lines=1, consume=True)
        self._do("logs", job.id, line=0, lines=1, stream="err")
        self._do("logs", job.id, offset=0, bytes=10, raw=True, wait=0.0)
        self._do("logs", job.id, from_time=1.0, to_time=2.0)
        self._do("log_times", job.id, stream="err", offset=0, upto=3)
        self._do("search", job.id, "one")
        every = {"stream": "out", "ignore_case": True, "fixed": True, "invert": False, "before": 1, "after": 1}
        self._do("search", job.id, "one", limit=1, offset=0, count=False, **every)
        self._read("matches", job.id, "one", limit=1, follow=True)
        self._read("follow", job.id)
        self._read("read", job.id, lines=1)
        self._read("read", job.id, offset=0, bytes=3, stream="err")
        copy = str(self._direct.paths.home) + "-copy"
        self._do("copy_to", "local", "/etc/hostname", copy)
        with open(copy, "rb") as file:
            self._do("copy_to", "local", file, copy)
        self._do("copy_from", "local", copy, copy, follow=True)
        watched = self._do("run", "echo here it is; exec sleep 1000", watch=["here"], check_interval=60.0)
        self._until_notified("watch_match")
        self._do("kill", watched.id, grace=0.1)

    def _terminal(self) -> None:
        shell = self._do(
            "run", "printf 'Password: '; stty -echo; read answer; exec sleep 1000", pty=True, size=(80, 24)
        )
        eventually(lambda: self._direct.inspect(shell.id).needs_input)
        self._do("screen", shell.id)
        self._do("screen", shell.id, ansi=True)
        self._do("resize", shell.id, 100, 30)
        self._do("send", shell.id, "answer")
        eventually(lambda: self._has_seen("process.input_over"))  # a process that has ended needs none any more
        self._direct.kill(shell.id, grace=0.1)
        self._do("wait", shell.id)
        self._attach()

    def _attach(self) -> None:
        """What the user's own terminal asks beside that: `holdfast attach`, until its keys detach it."""
        process = self._direct.run("exec sleep 1000", pty=True)
        call = [sys.executable, "-m", "holdfast", "attach", process.id]
        environ = {**os.environ, "HOLDFAST_HOME": str(self._client.paths.home), "TERM": "xterm"}
        master, slave = os.openpty()
        with (
            _naming(self._record, "attach"),
            subprocess.Popen(call, stdin=slave, stdout=slave, stderr=slave, env=environ) as attached,
        ):
            try:
                eventually(lambda: self._has_seen("process.attached"))
                os.write(master, _DETACH)
                assert attached.wait(20) == 0
            finally:
                attached.kill()
        os.close(master)
        os.close(slave)
        eventually(lambda: self._has_seen("process.detached"))
        self._direct.kill(process.id, grace=0.1)

    def _until_notified(self, kind: str) -> None:
        eventually(lambda: any(one.kind == kind for one in self._direct.inbox()))

    def _has_seen(self, topic: str) -> bool:
        return bool(list(self._direct.events(topic)))

    def _approvals(self) -> None:
        self._refused("run", _ASKS, gate=True, approval_wait=0.0)
        (request,) = self._do("approvals")
        self._do("approvals", all=True, session="golden")
        self._do("judge", "git push --force")
        self._do("judge", "git push --force", cwd="/", profile="strict")
        with _naming(self._record, "follow_approvals"), self._client.follow_approvals() as reading:
            next(iter(reading))
            self._do("approval_shown", request.id)
        self._do("approve", request.id, "session", by="tester")
        self._do("deny", request.id, by="tester")
        self._refused("approval_password", request.id, "word", by="tester")
        asked = {"key": "call-1", "command": "make install", "why": "the agent asks", "cwd": "/"}
        self._refused("request_approval", **asked, asker=True, approval_wait=1.0)
        self._direct.deny(next(one for one in self._direct.approvals() if one.state == "pending"))
        self._do("audit", after=0, limit=10, verify=True)

    def _notices(self) -> list[dict[str, Any]]:
        self._do("redact", "a text")
        self._do("run", "echo done; exit 5", origin={"chat": 7})
        self._until_notified("completion")
        found = [notice.to_json() for notice in self._direct.inbox(raw=True)]
        first, *_ = self._do("inbox")
        self._do("inbox", wait=0.0, session="golden", limit=1, take=True, raw=True, process=first.process, since=0.0)
        self._do("ack", first.id, "note_000000000000")
        self._do("ack", first.id, session="golden")
        with _naming(self._record, "notices"), self._client.notices(timeout=5.0) as reading:
            next(iter(reading))
        self._do("digest")
        return found

    def _sinks(self) -> None:
        self._do("sink_test", "hook")
        self._direct.wait(self._direct.run("exit 4", session="paged").id)
        dead = eventually(lambda: self._direct.sink_dead())
        self._do("sinks")
        self._do("sink_dead", 10)
        self._receiver.usual = Plan()
        self._do("sink_retry", dead[0]["id"])
        self._do("sink_retry", all=True)
        eventually(lambda: self._has_seen("sink.sent"))

    def _sessions(self) -> None:
        server = self._do("run", "exec sleep 1000", session="first", notify="any")
        self._do("transfer", server.id, "second")
        self._do("glance", [server.id], history=5)
        self._do("process_events", server.id, limit=5, before=1_000_000)
        self._do("show_settings")
        self._refused("control_project", "none", "up")
        self._do("set_queue", "build", limit=2, paused=False)
        self._do("queues")
        self._do("remove_queue", "build")
        self._do("backends")
        self._do("clean_backends")
        self._do("stop_backend", "ssh")
        self._do("backend_login", "ssh", host="host.invalid")
        self._do("agents")
        self._refused("agent_log", "second", after=1, before=2, limit=10, wait=0.0)
        self._refused("agent_start", "agents", env={"A": "1"}, cwd="/", umask=0o022, since=0)
        self._refused("agent_send", "agents", "hello", id="in_1", env={"A": "1"}, cwd="/", umask=0o022)
        self._refused("agent_settings", "agents", model="m", base_url="u", toolset="t")
        self._do("agent_control", "second", "interrupt")
        self._do("rename_session", "second", "third")
        self._do("sessions")
        self._do("end_session", "third", to="golden", keep=False)
        self._do("kill", server.id, grace=0.1)

    def _daemon(self) -> None:
        self._do("publish", "deploy.done", {"version": "1"})
        self._read("events", "process.**", since=0)
        with _naming(self._record, "events"), self._client.events("deploy.*", since=0, follow=True) as reading:
            next(iter(reading))
        self._do("http")
        self._do("http", "open", "127.0.0.1:0")
        self._do("dashboard")
        self._do("dashboard", "close")
        self._do("plugins")
        self._do("set_plugin", "cockpit", False)
        self._do("themes")
        self._do("http", "shut")
        self._do("status")
        self._do("doctor")
