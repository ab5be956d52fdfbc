"""A storm over a place that is not this machine: a container of Podman, or a host over SSH.

Besides daemon, keeper and anchor, what connects them is killed: relays, clients of engine and SSH, the control master,
the sessions of the server. Now and then the place cannot be reached for some seconds.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from holdfast.errors import HoldfastError
from tests.chaos import parts
from tests.chaos.commands import Child
from tests.chaos.shell_commands import make_for_shell
from tests.chaos.storm import _JUDGE, _RECOVERY, Storm
from tests.contracts.engines import IMAGE, TestEngine, TestPodman
from tests.contracts.sshd import SshServer
from tests.support import eventually

WEIGHTS = {"kill": 40, "stop": 6, "cut": 4}
#: In a place. A keeper, an anchor and what holds descriptors for the daemon: with one of them left, nothing is lost.
_INSIDE = {
    "holdfast-keeper": "keeper",
    "holdfast-anchor": "anchor",
    "holdfast-fork": "fork server",
    "holdfast-relay": "relay",
}


class StormPlace:
    """`options` are those of `run`, `links` the roles of what connects the daemon with it.

    `holder` is the role that has descriptors of the commands besides keeper and anchor.
    """

    backend: str
    holder: str
    links: tuple[str, ...]
    #: Of the instance: its configuration, and the environment of its daemon.
    config: str
    environ: Mapping[str, str]
    options: dict[str, object]

    def find_all(self) -> dict[str, list[int]]:
        """The processes of the place and of the connections to it, by role."""
        found: dict[str, list[int]] = {role: [] for role in (*_INSIDE.values(), *self.links)}
        for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
            try:
                name = Path(f"/proc/{pid}/comm").read_text().strip()
                words = os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes()).split("\0")
                role = _INSIDE.get(name)
                if role is not None and not self.is_inside(pid, words):
                    role = None
                elif role is None:
                    role = self.link_role(pid, name, words)
            except OSError:
                continue  # it ended meanwhile
            if role is not None and _state_of(pid) != "Z":
                found[role].append(pid)
        return found

    def is_inside(self, pid: int, words: list[str]) -> bool:
        raise NotImplementedError

    def link_role(self, pid: int, name: str, words: list[str]) -> str | None:
        raise NotImplementedError

    def host_pid(self, pid: int) -> int:
        """Of a process of the place."""
        return pid

    def processes(self) -> list[int]:
        """All that run in the place."""
        raise NotImplementedError

    def files(self) -> list[str]:
        """All of holdfast, there and here."""
        raise NotImplementedError

    def end(self) -> None:
        """End what is left in the place; the engine goes on."""
        raise NotImplementedError

    @contextmanager
    def cut(self) -> Iterator[None]:
        """The place cannot be reached meanwhile."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class PodmanPlace(StormPlace):
    backend = "podman"
    holder = "daemon"
    links = ("engine client", "engine monitor")

    def __init__(self, home: str, engine: TestEngine | None = None) -> None:
        self._home = home
        self._engine = engine or TestPodman(Path(tempfile.mkdtemp(prefix="holdfast-podman-")))
        self.environ = self._engine.environ
        self.config = f'[backends.podman]\nimage = "{IMAGE}"\nnetwork = "none"\nidle = 100000\n'
        self.options = {"backend": "podman", "task": "storm"}

    def is_inside(self, pid: int, words: list[str]) -> bool:
        return f"{self._home}/places/" in Path(f"/proc/{pid}/mountinfo").read_text()

    def link_role(self, pid: int, name: str, words: list[str]) -> str | None:
        if name == "podman" and words[1:2] == ["exec"]:
            return "engine client" if str(self._engine.directory).encode() in _environ(pid) else None
        if name == "conmon" and "--exec-attach" in words:
            return "engine monitor" if any(word.startswith(str(self._engine.directory)) for word in words) else None
        return None

    def host_pid(self, pid: int) -> int:
        for one in self.processes():
            with suppress(OSError):
                if _inner_pid(one) == pid:
                    return one
        raise AssertionError(f"no process {pid} in the container")

    def processes(self) -> list[int]:
        space = os.readlink(f"/proc/{self.find_all()['keeper'][0]}/ns/pid")
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                if os.readlink(f"/proc/{name}/ns/pid") == space:
                    found.append(int(name))
        return found

    def files(self) -> list[str]:
        return _files_below(f"{self._home}/places")

    def end(self) -> None:
        self._engine.remove_all()

    @contextmanager
    def cut(self) -> Iterator[None]:
        container = self._engine.run("ps", "--quiet")
        self._engine.run("pause", container)
        try:
            yield
        finally:
            self._engine.run("unpause", container)

    def close(self) -> None:
        self._engine.close()
        shutil.rmtree(self._engine.directory, ignore_errors=True)


class SshHost(StormPlace):
    backend = "ssh"
    holder = "relay"
    links = ("ssh client", "control master", "server session")

    def __init__(self, home: str) -> None:
        self._home = home
        self._server = SshServer()
        self._there = str(self._server.directory / "there")
        self.environ = {"XDG_RUNTIME_DIR": str(self._server.directory)}
        given = "".join(f"{name} = {value!r}\n" for name, value in self._server.options.items())
        self.config = f'[backends.ssh]\n{given}directory = "{self._there}"\n'.replace("'", '"')
        self.options = {"backend": "ssh"}

    def is_inside(self, pid: int, words: list[str]) -> bool:
        return any(word.startswith(self._there) for word in words)

    def link_role(self, pid: int, name: str, words: list[str]) -> str | None:
        if name == "ssh":
            if not any(str(self._server.directory) in word for word in words):
                return None
            return "control master" if words[0].startswith("ssh: ") else "ssh client"
        if name.startswith("sshd") and pid != self._server.process.pid:
            return "server session" if self._server.process.pid in _ancestors(pid) else None
        return None

    @contextmanager
    def cut(self) -> Iterator[None]:
        self._server.end()
        # The listener has ended: its sessions are found by what they serve.
        parts.send_signal(self.find_all()["control master"], signal.SIGKILL)
        try:
            yield
        finally:
            self._server.begin()

    def processes(self) -> list[int]:
        """Those of holdfast, and all that they started."""
        found = [pid for role, pids in self.find_all().items() if role not in self.links for pid in pids]
        children: dict[int, list[int]] = {}
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            children.setdefault(parts.parent_of(pid), []).append(pid)
        for pid in found:
            found += [child for child in children.get(pid, ()) if child not in found]
        return found

    def files(self) -> list[str]:
        return [*_files_below(f"{self._home}/places"), *_files_below(self._there)]

    def end(self) -> None:
        while found := self.processes():
            parts.send_signal(found, signal.SIGKILL)
        self._server.close()

    close = end


STORM_PLACES: dict[str, Callable[[str], StormPlace]] = {"podman": PodmanPlace, "ssh": SshHost}


@dataclass
class PlaceStorm(Storm):
    place: StormPlace = field(default_factory=StormPlace)
    weights: ClassVar[dict[str, int]] = WEIGHTS

    def __post_init__(self) -> None:
        self.roles = ("daemon", "worker", *_INSIDE.values(), *self.place.links)  # type: ignore[misc]
        self.config = f"breaker_limit = 0\n{self.place.config}"  # type: ignore[misc]

    def _find_all(self) -> dict[str, list[int]]:
        ours = parts.find_all(self.home)
        return {"daemon": ours["daemon"], "worker": ours["worker"], **self.place.find_all()}

    def _victims(self, count: int, spared: tuple[str, ...]) -> list[str]:
        victims = super()._victims(count, spared)
        for role in victims:
            self.verdict.done[f"{role} kills"] += 1
        return victims

    def _do(self, kind: str) -> str:
        if kind != "cut":
            return super()._do(kind)
        seconds = self._plan.choice((0.5, 2.0, 5.0))
        self.verdict.done["cuts"] += 1
        with self._refusing(), self.place.cut():
            also = self._work_for(seconds)
        return f"cut for {seconds:g} s{also}"

    def _make(self, kind: str, session: str, seconds: float, size: int) -> Child:
        return make_for_shell(len(self._all), kind, session, seconds, size, self._chance)

    def _options(self, child: Child) -> dict[str, object]:
        return {**child.options, **self.place.options}

    def _may_be_refused(self, what: str, error: HoldfastError) -> bool:
        """While there is no connection, requests are refused by that name."""
        return error.code == "unreachable" or super()._may_be_refused(what, error)

    def _kill_tree(self, child: Child) -> None:
        process = self._clients[_JUDGE].inspect(child.process_id)
        assert process.pid is not None
        child.is_killed = True
        self.verdict.done["commands killed"] += 1
        parts.send_signal([self.place.host_pid(process.pid)], signal.SIGKILL)

    def _until_whole(self) -> None:
        """Connected, and every process that can be needed is there and has the descriptors of the commands."""

        def is_whole() -> bool:
            judge = self._clients[_JUDGE]
            running = judge.ps()  # which also has the relay started again
            found = self._find_all()
            held = {
                role: [_descriptors(pid) for pid in found[role]] for role in ("keeper", "anchor", self.place.holder)
            }
            self._last_seen = f"{[(one.id, one.status) for one in running]}, {found}, descriptors: {held}"
            ours = {child.process_id: child for child in self._all}
            inputs = [
                ours[one.id] for one in running if one.id in ours and (ours[one.id].to_send or ours[one.id].is_terminal)
            ]
            terminals = sum(child.is_terminal for child in inputs)
            needed = (len(running), terminals, len(inputs) - terminals)
            return (
                all(one.status != "unreachable" for one in running)
                and all(len(counts) == 1 and _are_enough(counts[0], needed) for counts in held.values())
                and len(found["relay"]) == 1
            )

        try:
            eventually(is_whole, timeout=_RECOVERY, pause=0.05)
        except AssertionError:
            raise AssertionError(f"not whole after {_RECOVERY} s: {self._last_seen}") from None


def _descriptors(pid: int) -> tuple[int, int, int]:
    """How many of processes, of terminals and of the input of others it has open."""
    links = []
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                links.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    ends = ("[pidfd]", "ptmx", "/in.fifo")
    pidfds, terminals, inputs = (sum(link.endswith(end) for link in links) for end in ends)
    return pidfds, terminals, inputs


def _are_enough(counts: tuple[int, ...], needed: tuple[int, ...]) -> bool:
    return all(count >= need for count, need in zip(counts, needed, strict=True))


def _files_below(directory: str) -> list[str]:
    return [f"{at}/{name}" for at, _, names in os.walk(directory) for name in names]


def _environ(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def _state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _inner_pid(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return pid


def _ancestors(pid: int) -> Iterator[int]:
    while pid := parts.parent_of(pid):
        yield pid
