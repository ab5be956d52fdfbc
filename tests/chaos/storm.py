"""A storm: commands that write and read known bytes while the processes of holdfast are killed, stopped and starved.

What is done in which round comes from the seed. How far the instance is at that instant does not.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from binascii import b2a_base64
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import holdfast
from holdfast.client.calls import Ask
from holdfast.errors import HoldfastError
from tests.chaos import commands, parts
from tests.chaos.commands import Child
from tests.chaos.disk import SmallDisk
from tests.chaos.ledger import NoticeLedger
from tests.support import eventually

T = TypeVar("T")

#: How often each kind of round comes.
WEIGHTS = {
    "kill": 60,
    "stop": 10,
    "long stop": 1,
    "full disk": 4,
    "read-only disk": 4,
    "descriptors": 4,
    "clock": 4,
    "cgroup": 4,
}
#: What can be left out: kinds of rounds, and STOP of workers.
SWITCHES = (*WEIGHTS, "worker stop")

_SESSIONS = ("ada", "bob", "eve")
#: A session that owns nothing, from which all is read at the end.
_JUDGE = "judge"
#: How long everything may take to be whole again after what was done to it.
_RECOVERY = 40.0
#: A round that takes longer hangs: the storm ends with a fault.
_LONGEST_ROUND = 150
#: How long what is full, read-only or short of descriptors stays so.
_SHORTEST_PHASE, _LONGEST_PHASE = 0.1, 0.6
#: How many may be killed at once. Of those that hold descriptors, two at most.
_VICTIMS = (1, 1, 2, 3, 5)
#: The kernel keeps the exit status of a process that was reaped, for the holders of its pidfd.
_STATUS_OUTLIVES_REAPING = (6, 15)


@dataclass
class Verdict:
    """What was done, and what is wrong."""

    children: int = 0
    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    inexact: list[str] = field(default_factory=list)
    """Commands whose output is not what they wrote."""
    wrong: list[str] = field(default_factory=list)
    """Commands whose exit is not their own."""
    notices: list[str] = field(default_factory=list)
    """Notifications that are missing, doubled, or came to another session."""
    errors: list[str] = field(default_factory=list)
    """Requests that failed although nothing was full or read-only, and the like."""

    @property
    def kills(self) -> int:
        return self.done["kills"]

    @property
    def faults(self) -> list[str]:
        return [*self.inexact, *self.wrong, *self.notices, *self.errors]

    def __str__(self) -> str:
        done = ", ".join(f"{count:,} {what}" for what, count in self.done.items())
        return f"{done}; {self.children:,} commands: {len(self.faults)} faults"


@dataclass
class Storm:
    home: str
    seed: int
    #: Commands that run through the whole storm; others come and go.
    children: int = 14
    rounds: int = 20
    #: Without one, the phases of the disk are left out.
    disk: SmallDisk | None = None
    #: The file that shifts the wall clock of the instance (HOLDFAST_CLOCK); without one, the clock does not jump.
    clock: str | None = None
    without: tuple[str, ...] = ()
    say: Callable[[str], None] = field(default=lambda line: None)
    verdict: Verdict = field(default_factory=Verdict)

    #: How often each kind of round comes, and the processes that are killed.
    weights: ClassVar[dict[str, int]] = WEIGHTS
    roles: ClassVar[tuple[str, ...]] = parts.EVERY_ROLE
    config: ClassVar[str] = "breaker_limit = 0\n"

    def run(self) -> Verdict:
        """Raises AssertionError where it does not become whole again."""
        self._chance = random.Random(self.seed)
        #: Of the rounds alone: they are the same again, however many requests there were meanwhile.
        self._plan = random.Random(self.seed)
        self._ledger = NoticeLedger()
        self._all: list[Child] = []
        self._is_refusing = False
        os.makedirs(self.home, mode=0o700, exist_ok=True)
        with open(f"{self.home}/config.toml", "w") as file:
            file.write(self.config)
        with contextlib.ExitStack() as stack:
            clients = {name: stack.enter_context(_connect(self.home, name)) for name in (*_SESSIONS, _JUDGE)}
            self._clients = clients
            for number in range(self.children):
                self._start(commands.KINDS[number % len(commands.KINDS)], self.rounds * 0.3, 4000)
            for number in range(self.rounds):
                with _limited(_LONGEST_ROUND):
                    self._round(number)
            return self._judge()

    def _round(self, number: int) -> None:
        began = time.monotonic()
        self._until_whole()
        whole = time.monotonic() - began
        time.sleep(self._plan.uniform(0, 0.01))
        kinds = [kind for kind in self.weights if self._is_possible(kind)]
        (kind,) = self._plan.choices(kinds, [self.weights[kind] for kind in kinds])
        before = len(self.verdict.errors) + len(self._ledger.faults)
        done = self._do(kind)
        seconds = time.monotonic() - began
        self.say(f"round {number + 1} of {self.rounds}: {done} ({whole:.1f} s until whole, {seconds:.1f} s in all)")
        for fault in [*self.verdict.errors, *self._ledger.faults][before:]:
            self.say(f"round {number + 1}: FAULT: {fault}")

    def _is_possible(self, kind: str) -> bool:
        if kind in self.without:
            return False
        return not ("disk" in kind and self.disk is None) and not (kind == "clock" and self.clock is None)

    def _do(self, kind: str) -> str:
        """Do it, with requests meanwhile; a line that says what was done."""
        match kind:
            case "kill":
                with self._killing() as said:
                    self._work()
                return said()
            case "stop":
                return self._stop(self._plan.uniform(0.02, 0.4))
            case "long stop":
                return self._stop(self._plan.uniform(2.0, 6.0))
            case "full disk" | "read-only disk":
                return self._starve_disk(kind)
            case "descriptors":
                return self._starve_descriptors()
            case "clock":
                return self._move_clock()
            case _:
                return self._spoil_cgroups()

    # What is done to it.

    @contextlib.contextmanager
    def _killing(self, spared: tuple[str, ...] = ()) -> Iterator[Callable[[], str]]:
        """Kill processes of one role or more at once, at some instant while the body runs."""
        victims = self._victims(self._plan.choice(_VICTIMS), spared)
        killed: list[int] = []

        def kill() -> None:
            found = self._find_all()
            killed.append(parts.send_signal([pid for role in victims for pid in found[role]], signal.SIGKILL))

        timer = threading.Timer(self._plan.uniform(0, 0.04), kill)
        timer.start()
        yield lambda: f"killed {' and '.join(victims)}"
        timer.join()
        self.verdict.done["kills"] += sum(killed)
        self.verdict.done["at once with another"] += sum(killed) * (len(victims) > 1)

    def _find_all(self) -> dict[str, list[int]]:
        """The processes of each role."""
        return parts.find_all(self.home)

    def _victims(self, count: int, spared: tuple[str, ...]) -> list[str]:
        found = self._find_all()
        order = self._plan.sample(self.roles, len(self.roles))
        found_in_order = [role for role in order if found[role] and role not in spared]
        holders = [role for role in found_in_order if role in parts.ROLES][:2]
        victims = [role for role in found_in_order if role in holders or role not in parts.ROLES][:count]
        if {"keeper", "anchor"} <= {*victims, *spared} and not _status_outlives_reaping():
            victims = [role for role in victims if role != "anchor"]
        return victims

    def _stop(self, seconds: float) -> str:
        """STOP one, kill another or two meanwhile at times, CONT it after a while."""
        found = self._find_all()
        order = self._plan.sample(self.roles, len(self.roles))
        role = next(role for role in order if found[role] and f"{role} stop" not in self.without)
        stopped = parts.send_signal(found[role], signal.SIGSTOP)
        self.verdict.done["stops"] += stopped
        timer = threading.Timer(seconds, lambda: parts.send_signal(found[role], signal.SIGCONT))
        timer.start()
        also = ""
        try:
            if self._plan.random() < 0.5:
                with self._killing(spared=(role,)) as said:
                    self._work()
                also = f"; meanwhile {said()}"
            else:
                self._work()
        finally:
            timer.join()
        return f"stopped {role} for {seconds:.1f} s{also}"

    def _starve_disk(self, kind: str) -> str:
        assert self.disk is not None
        begin, end = (
            (self.disk.fill, self.disk.free)
            if kind == "full disk"
            else (self.disk.set_read_only, self.disk.set_writable)
        )
        self.verdict.done["disk phases"] += 1
        with self._refusing():
            begin()
            try:
                also = self._work_for(self._plan.uniform(_SHORTEST_PHASE, _LONGEST_PHASE))
            finally:
                end()
        return f"{kind}{also}"

    def _starve_descriptors(self) -> str:
        role = self._plan.choice(("daemon", "keeper"))
        pids = parts.find(self.home, role)
        before = {name: [parts.file_limit(pid) for pid in pids] for name, pids in parts.find_all(self.home).items()}
        more = self._plan.choice((0, 1, 3, 8, 20, 40))
        self.verdict.done["descriptor phases"] += 1
        with self._refusing():
            for pid in pids:
                limit = parts.file_limit(pid)
                if limit is not None:
                    parts.file_limit(pid, (parts.open_files(pid) + more, limit[1]))
            try:
                also = self._work_for(self._plan.uniform(_SHORTEST_PHASE, _LONGEST_PHASE))
            finally:
                self._restore_limits(before)
        return f"{role} may open {more} more files{also}"

    def _restore_limits(self, before: dict[str, list[parts.FileLimit | None]]) -> None:
        """Also of those that were started meanwhile, and inherited the limit."""
        for role, pids in parts.find_all(self.home).items():
            usual = next((limit for limit in before[role] if limit is not None), None)
            for pid in pids:
                if usual is not None:
                    parts.file_limit(pid, usual)

    def _move_clock(self) -> str:
        assert self.clock is not None
        seconds = self._plan.choice((-1, 1)) * self._plan.choice((0.5, 20.0, 3600.0, 40_000.0))
        with open(f"{self.clock}.new", "w") as file:
            file.write(f"{seconds}")
        os.rename(f"{self.clock}.new", self.clock)
        self.verdict.done["clock jumps"] += 1
        with self._killing() as said:
            self._work()
        return f"the clock is off by {seconds:g} s; {said()}"

    def _spoil_cgroups(self) -> str:
        """Remove the empty cgroups of the instance, and kill what is in the one of a sleeper."""
        root = self._clients[_JUDGE].status()["cgroup"]
        sleepers = [child for child in self._started() if child.kind == "sleeper" and not child.is_killed]
        for child in sleepers[:1]:
            self._kill_tree(child)
        removed, until = 0, time.monotonic() + 0.05
        while root is not None and time.monotonic() < until:
            for name in os.listdir(root):
                with contextlib.suppress(OSError):  # no directory, or not empty
                    os.rmdir(f"{root}/{name}")
                    removed += 1
        self.verdict.done["cgroups removed"] += removed
        self._work()
        return f"removed {removed} empty cgroups, killed what was in {len(sleepers[:1])}"

    def _kill_tree(self, child: Child) -> None:
        judge = self._clients[_JUDGE]
        process = judge.inspect(child.process_id)
        assert process.pid is not None
        child.is_killed = True
        self.verdict.done["commands killed"] += 1
        root = judge.status()["cgroup"]
        switch = f"{root}/{parts.cgroup_name(process.pid)}/cgroup.kill"
        if root is not None and os.path.exists(switch):
            with open(switch, "w") as file:
                file.write("1")
        else:
            parts.send_signal([process.pid], signal.SIGKILL)

    # What is asked of it meanwhile.

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        """While something is full or read-only, a request may be refused."""
        self._is_refusing = True
        try:
            yield
        finally:
            self._is_refusing = False

    def _work_for(self, seconds: float) -> str:
        """Requests for so many seconds, at times with a kill; what was killed."""
        until = time.monotonic() + seconds
        also = ""
        if self._plan.random() < 0.5:
            with self._killing() as said:
                self._work()
            also = f"; meanwhile {said()}"
        while time.monotonic() < until:
            self._work()
            time.sleep(0.02)
        return also

    def _work(self) -> None:
        """A few requests, as a user would send them."""
        chance = self._chance
        if chance.random() < 0.4 and len(self._all) < self.children + self.rounds:
            self._start(chance.choice(commands.KINDS), chance.uniform(0, 1.0), chance.randrange(20, 400))
        for child in self._started():
            if child.sent < len(child.to_send) and chance.random() < 0.2:
                self._feed(child, child.sent + chance.randrange(1, 6000))
        if chance.random() < 0.4:
            self._read_inbox(chance.choice(_SESSIONS), chance.choice((0.0, 0.5, 1.0)))
        if chance.random() < 0.2:
            self._wait_for(chance.choice(self._started()), chance.uniform(0, 0.2))
        if chance.random() < 0.1:
            terminals = [child for child in self._started() if child.is_terminal]
            if terminals:
                shown = chance.choice(terminals)
                self._ask("screen", lambda: self._clients[shown.session].screen(shown.process_id))

    def _started(self) -> list[Child]:
        return [child for child in self._all if child.process_id]

    def _start(self, kind: str, seconds: float, size: int) -> None:
        session = self._chance.choice(_SESSIONS)
        child = self._make(kind, session, seconds, size)
        self._all.append(child)
        options: Any = self._options(child)
        process = self._ask("start", lambda: self._clients[session].run(child.argv, **options))
        if process is not None:
            child.process_id = process.id

    def _make(self, kind: str, session: str, seconds: float, size: int) -> Child:
        return commands.make(len(self._all), kind, session, seconds, size, self._chance)

    def _options(self, child: Child) -> dict[str, object]:
        return child.options

    def _feed(self, child: Child, end: int) -> None:
        """Write up to that byte. The offset makes it a request that may be repeated."""
        client = self._clients[child.session]
        if not child.sent and child.is_terminal:  # a line discipline that is not raw yet would change some of it
            process = self._ask("inspect", lambda: client.inspect(child.process_id))
            if process is None or process.output_bytes < 2:
                return
        end = min(end, len(child.to_send))
        data = b2a_base64(child.to_send[child.sent : end], newline=False).decode()
        asked = {"process": child.process_id, "data": data, "enter": False, "eof": False, "at": child.sent}
        if self._ask("send", lambda: client._call(Ask("send", asked))) is not None:
            child.sent = end

    def _read_inbox(self, session: str, share: float) -> bool:
        """Read it and acknowledge a share of it. Whether there was something."""
        client = self._clients[session]
        notices = self._ask("inbox", client.inbox)
        if not notices:
            return False
        self._ledger.received(session, notices)
        chosen = [notice for notice in notices if self._chance.random() < share]
        if chosen and self._ask("ack", lambda: client.ack(*chosen)) is not None:
            self._ledger.acknowledged(chosen)
        return True

    def _wait_for(self, child: Child, seconds: float) -> None:
        if child.is_consumed:
            return
        client = self._clients[child.session]
        process = self._ask("wait", lambda: client.wait(child.process_id, timeout=seconds))
        if process is None:
            child.is_consumed = None
        elif process.ended_at is not None:
            child.is_consumed = True
            self._ledger.consumed(child)

    def _ask(self, what: str, call: Callable[[], T]) -> T | None:
        """The reply; None where it is refused, which is a fault unless something is full or read-only."""
        try:
            return call()
        except HoldfastError as error:
            if self._is_refusing or self._may_be_refused(what, error):
                self.verdict.refused[f"{what}: {error.code}"] += 1
            else:
                self.verdict.errors.append(f"{what} was refused: {error} ({error.code})")
            return None

    def _may_be_refused(self, what: str, error: HoldfastError) -> bool:
        """A screen worker that is killed again and again looks like one that crashes over what a process wrote."""
        return what == "screen" and error.code != "unreachable"

    # Whether all is as it must be.

    def _until_whole(self) -> None:
        """Everything promised holds for one death or two; a third has to wait until the family is whole again."""

        def is_whole() -> bool:
            status = self._clients[_JUDGE].status()
            found = parts.find_all(self.home)
            self._last_seen = f"{status}, {found}"
            is_known = status["keeper_pid"] in found["keeper"] and status["anchor_pid"] in found["anchor"]
            return is_known and status["log_bytes"] is not None and status["held"] == status["processes"]

        try:
            eventually(is_whole, timeout=_RECOVERY)
        except AssertionError:
            running = [process.id for process in self._clients[_JUDGE].ps()]
            raise AssertionError(f"not whole after {_RECOVERY} s: {self._last_seen}, running: {running}") from None

    def _judge(self) -> Verdict:
        verdict, judge = self.verdict, self._clients[_JUDGE]
        parts.send_signal([pid for pids in self._find_all().values() for pid in pids], signal.SIGCONT)
        self._until_whole()
        self._find_unsure()
        for child in self._started():
            if child.kind == "sleeper" and not child.is_killed:
                self._kill_tree(child)
            while child.sent < len(child.to_send):
                self._feed(child, len(child.to_send))
                time.sleep(0.01)
        children = self._started()
        verdict.children = len(children)
        ended = {process.id: process for process in judge.wait([child.process_id for child in children], timeout=60)}
        for child in children:
            process = ended[child.process_id]
            for stream in child.expected:
                output = b"".join(chunk.data for chunk in judge.follow(child.process_id, stream=stream))
                if (fault := child.fault_in(stream, output)) is not None:
                    verdict.inexact.append(fault)
            how = (process.exit_code, process.signal)
            if how != ((None, signal.SIGKILL) if child.is_killed else (child.code, None)):
                verdict.wrong.append(f"{child}: ended with {how}, {process.reason}; its code is {child.code}")
        self._check_notices(children)
        return verdict

    def _find_unsure(self) -> None:
        """A start that was refused while something was full may have happened: it then is a command as any other."""
        known = {child.process_id for child in self._started()}
        for process in self._clients[_JUDGE].ps(all=True):
            if process.id not in known:
                child = self._all[int(process.labels["storm"])]
                if child.process_id:
                    self.verdict.errors.append(f"{child}: runs a second time, as {process.id}")
                child.process_id = process.id

    def _check_notices(self, children: list[Child]) -> None:
        until = time.monotonic() + _RECOVERY
        while True:
            is_more = sum(self._read_inbox(session, 1.0) for session in _SESSIONS) > 0
            missing = self._ledger.missing(children)
            if not (is_more or missing) or time.monotonic() > until:
                break
            time.sleep(0 if is_more else 0.05)
        self.verdict.notices += [*missing, *self._ledger.surplus(children)]
        # What is acknowledged does not come again, also from the next daemon.
        self.verdict.done["kills"] += parts.send_signal(parts.find(self.home, "daemon"), signal.SIGKILL)
        for session in _SESSIONS:
            self._read_inbox(session, 0.0)
        if notices := self._clients[_JUDGE].inbox():
            self.verdict.notices.append(f"{len(notices)} notifications in a session that owns nothing")
        self.verdict.notices += self._ledger.faults


def _connect(home: str, session: str) -> holdfast.Client:
    return holdfast.connect(session=session, home=home)


@contextlib.contextmanager
def _limited(seconds: int) -> Iterator[None]:
    """Raises AssertionError in the main thread when the body takes longer."""

    def end(*_: object) -> None:
        raise AssertionError(f"nothing has gone on for {seconds} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _status_outlives_reaping() -> bool:
    release = os.uname().release.split(".")
    return (int(release[0]), int(release[1])) >= _STATUS_OUTLIVES_REAPING
