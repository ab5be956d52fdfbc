"""Starts commands: creates the bundle, has a child forked, and answers when the child has become the command.

`Starter` has the starts in progress. `Launch` is all that one of them creates and opens before the fork, `Relaunch` the
same for the next run of a command that has ended. `Prepared` is what is created before the next start is requested.
"""

from __future__ import annotations

import contextlib
import errno as errors
import itertools
import json
import os
import resource
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast_keeper import bundle, cgroups, failpoints, kernel, log
from holdfast_keeper.bundle import KeeperDir
from holdfast_keeper.cgroups import Groups, Paths, ProcessLimits, group_of, oom_kills
from holdfast_keeper.connections import Descriptors, HolderLink, ReplyTo
from holdfast_keeper.fork_server import ChildAnswer, ChildRequest, Forks
from holdfast_keeper.held_command import HeldCommand, new_report, open_fifo
from holdfast_keeper.journal import Journal
from holdfast_keeper.output import is_disk_full

if TYPE_CHECKING:
    from holdfast_keeper.keeper import Keeper

Spec = dict[str, Any]

#: A start is tried this often when its child, or the fork server, was killed.
_TRIES = 5
#: Descriptors that no start may take: for commands that run, requests, and the next daemon.
_HEADROOM = 16
_numbers = itertools.count(1)
_BLANK = b" " * bundle.STATE_SIZE


class Program(NamedTuple):
    """What a command executes, byte for byte."""

    argc: int
    block: bytes
    """Arguments, then variables, each ended by a zero byte."""
    text: bytes
    """The whole spec as JSON, as it is stored."""

    @classmethod
    def of_spec(cls, spec: Spec) -> Program:
        """Raises ValueError where an argument or variable cannot be passed to a program."""
        words = [*spec["argv"], *(f"{name}={value}" for name, value in spec["env"].items())]
        block = os.fsencode("\0".join([*words, ""]))
        if block.count(b"\0") != len(words):
            raise ValueError("embedded null byte")
        return cls(len(spec["argv"]), block, json.dumps(spec).encode())

    @property
    def name(self) -> str:
        return os.fsdecode(self.block.partition(b"\0")[0])


class StartRequest(NamedTuple):
    """A start that was requested, and the requests to answer."""

    id: str
    spec: Spec
    """What the keeper needs of it."""
    program: Program
    reply_to: list[ReplyTo]
    before: dict[str, Any] | None = None
    """The report of the run before, where the command is run again."""
    born: bundle.Slot = {}  # noqa: RUF012 - never changed
    """What is added to the record of the start then: the number of the run, among others."""
    tries: int = _TRIES


class _Attempt(NamedTuple):
    request: StartRequest
    launch: Launch
    group: str | None
    """The cgroup of the child."""
    holders: list[HolderLink]
    """Those that the child sends its descriptors to."""


class Prepared(NamedTuple):
    """What the next start of any command needs: made while the keeper is idle, because it takes as long as all
    the rest. No record depends on it: what a keeper leaves behind, the next one removes.
    """

    directory: str
    pending: str
    out: int
    """The FIFO for its output, open for reading."""
    spec: int
    """The file for its spec, open for writing."""
    group: str | None

    @classmethod
    def make(cls, directory: str, groups: Groups) -> Prepared:
        """Raises OSError, after removing what was created. The cgroup comes last: to make one holds up the fork into
        another one.
        """
        pending = _new_pending()
        opened: list[int] = []
        try:
            os.mkdir(directory, 0o700)
            os.mkfifo(f"{directory}/{bundle.FIFO['out']}", 0o600)
            bundle.create(f"{directory}/{pending}", _BLANK)
            opened.append(open_fifo(directory, "out"))
            opened.append(bundle.open_new(f"{directory}/{bundle.SPEC}"))
            return cls(directory, pending, opened[0], opened[1], groups.make())
        except OSError:
            for fd in opened:
                os.close(fd)
            _discard(directory)
            raise

    def withdraw(self) -> None:
        self.close()
        _discard(self.directory)
        if self.group is not None:
            cgroups.remove(self.group)

    def close(self) -> None:
        os.close(self.out)
        os.close(self.spec)


class Starter:
    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._under_way: dict[str, _Attempt] = {}
        self._next_directory = f"{keeper.dir.path}/{bundle.NEXT}"
        self._prepared: Prepared | None = None
        _discard(self._next_directory)
        self.forks = Forks(keeper.loop, keeper.dir.path, keeper.dir.file_limit)

    @property
    def is_busy(self) -> bool:
        return bool(self._under_way)

    def groups(self) -> set[str]:
        """The cgroups that are in use though no held command is in them yet."""
        attempts = self._under_way.values()
        limits = {path for attempt in attempts for path in attempt.launch.limits.values()}
        groups = {attempt.group for attempt in attempts} | {self._prepared.group if self._prepared else None}
        return {group for group in groups if group is not None} | limits

    def under_way(self) -> dict[str, Descriptors]:
        """Descriptors of commands that are being started: holders must have these as well."""
        return {key: attempt.launch.fds for key, attempt in self._under_way.items()}

    def is_starting(self, pid: int) -> bool:
        """Whether this is the pid of a command that runs, though the fork server has not said so yet."""
        states = (bundle.read_state(attempt.launch.directory) for attempt in self._under_way.values())
        return any(state is not None and (state.born or {}).get("pid") == pid for state in states)

    def start(self, reply_to: ReplyTo, process_id: str, spec: Spec, program: Program) -> None:
        """Start a command and answer when it runs. The same id again is the same start."""
        known = self._keeper.report(process_id)
        if known is not None:
            reply_to[0].answer(reply_to[1], known)
        elif process_id in self._under_way:
            self._under_way[process_id].request.reply_to.append(reply_to)
        else:
            self._attempt(StartRequest(process_id, spec, program, [reply_to]))

    def rerun(self, request: StartRequest) -> None:
        """Run a command again whose bundle is archived, and answer when it runs. A repeated request joins the first."""
        attempt = self._under_way.get(request.id)
        if attempt is None:
            self._attempt(request)
        elif attempt.request.born == request.born:
            attempt.request.reply_to.extend(request.reply_to)
        else:
            _refuse(request, ("not_now", f"{request.id} is just being started"))

    def report_before(self, process_id: str) -> dict[str, Any] | None:
        """The report of the last run of a command that is being run again."""
        attempt = self._under_way.get(process_id)
        return attempt.request.before if attempt is not None else None

    def dismiss(self) -> None:
        self.forks.close()
        if self._prepared is not None:
            self._prepared.withdraw()
            self._prepared = None
        for attempt in self._under_way.values():
            attempt.launch.started()

    def _attempt(self, request: StartRequest) -> None:
        try:
            _check_descriptors()
        except OSError as short:
            _refuse(request, _describe("setup", short.errno, short.strerror or str(short), request))
            return
        launch = self._launch(request)
        prepared = self._take_prepared() if request.before is None and not request.spec["pty"] else None
        group = self._keeper.groups.make() if prepared is None else prepared.group
        attempt = _Attempt(request, launch, group, self._keeper.ready_holders())
        try:
            if prepared is not None:
                launch.take(prepared)
            launch.prepare(self._keeper.limits, group)
            failpoints.reach("start-prepared")
            self.forks.run(_child_request(attempt), lambda answer: self._settle(attempt, answer))
        except OSError as failed:
            self._withdraw(attempt)
            _refuse(request, _describe("setup", failed.errno, failed.strerror or str(failed), request))
            return
        self._under_way[request.id] = attempt
        failpoints.reach("start-requested")
        self._keeper.loop.when_idle(self._prepare)

    def _prepare(self) -> None:
        """While the command is forked, or later."""
        if self._prepared is None:
            try:
                self._prepared = Prepared.make(self._next_directory, self._keeper.groups)
            except OSError:  # the next start says what is wrong
                return

    def _take_prepared(self) -> Prepared | None:
        prepared, self._prepared = self._prepared, None
        if prepared is not None and prepared.group is not None and not os.path.isdir(prepared.group):
            prepared = prepared._replace(group=self._keeper.groups.make())  # another program removed it
        return prepared

    def _launch(self, request: StartRequest) -> Launch:
        keeper_dir = self._keeper.dir
        if request.before is None:
            return Launch(request.id, keeper_dir.live(request.id), request.spec, request.program)
        self._keeper.quota.forget(keeper_dir.done(request.id))
        return Relaunch(request.id, keeper_dir, request.spec, request.program, request.born)

    def _settle(self, attempt: _Attempt, answer: ChildAnswer) -> None:
        """The child has become the command, or failed, or was killed."""
        launch = attempt.launch
        del self._under_way[launch.id]
        if answer.pidfd is not None:
            launch.fds["pidfd"] = answer.pidfd
        if answer.claimed:
            self._started(attempt, answer)
            return
        was_killed = answer.stage == "killed"
        was_too_small = was_killed and oom_kills(launch.limits) > 0
        self._withdraw(attempt)
        request = attempt.request
        if was_killed and not was_too_small and request.tries > 1:
            self._attempt(request._replace(tries=request.tries - 1))
            return
        stage, errno, message = answer.stage, answer.errno, answer.message or os.strerror(answer.errno)
        if was_too_small:
            stage, message = "limits", "that memory is too little to start anything"
        elif was_killed:
            stage, message = "setup", "it was killed before it could start"
        _refuse(request, _describe(stage, errno, message, request))
        self._keeper.exit_if_done()

    def _started(self, attempt: _Attempt, answer: ChildAnswer) -> None:
        launch = attempt.launch
        launch.born = {"pid": answer.pid, "start": answer.start, **launch.born}
        if launch.spec.get("sandbox"):  # the child has added the init of its sandbox
            recorded = bundle.read_state(launch.directory)
            launch.born = (recorded and recorded.born) or launch.born
        served = [holder for bit, holder in enumerate(attempt.holders) if not answer.missed >> bit & 1]
        self._keeper.deposit(launch.id, launch.fds, answer.pid, but=served)
        launch.started()
        failpoints.reach("start-seen")
        is_new = attempt.request.before is None
        if is_new:  # the answer need not wait for what follows
            _answer(attempt.request, new_report(launch.id, launch.born))
        state = bundle.BundleState(launch.born, None, None, None)
        command = HeldCommand(launch.id, launch.directory, state, launch.fds, self._keeper.quota, is_new)
        if not is_new:
            _answer(attempt.request, command.report())
        self._keeper.hold(command)
        if launch.born["group"] != attempt.group:
            self._keeper.sweep_groups_later()  # it left the group that it was forked in

    def _withdraw(self, attempt: _Attempt) -> None:
        """Undo a start. The child exits and is reaped as any other; its cgroup is removed now or swept later."""
        launch = attempt.launch
        self._keeper.withdraw(launch.id)
        try:
            launch.give_up()
        except OSError as failed:  # a full disk: the bundle is right where it is, and the next keeper moves it
            log.write(f"keeper: {launch.id}: {failed}")
        if isinstance(launch, Relaunch):
            self._keeper.quota.archive(self._keeper.dir.done(launch.id))
        made = {attempt.group, *launch.limits.values()}
        left = [group for group in made if group is not None and not cgroups.remove(group)]
        if left:
            self._keeper.sweep_groups_later()


def _discard(directory: str) -> None:
    """Remove what was prepared; on a disk that is read-only it stays."""
    with contextlib.suppress(OSError):
        bundle.remove(directory)


def _new_pending() -> str:
    """Unique, so that the child of a start that was given up cannot claim the bundle of the next one."""
    return bundle.pending(f"{os.getpid()}-{next(_numbers)}")


def _check_descriptors() -> None:
    """Raises OSError where a start would leave too few descriptors for commands that run and for the next daemon."""
    used = os.stat("/proc/self/fd").st_size  # their number, since Linux 6.2; before, 0
    if used and used + _HEADROOM <= resource.getrlimit(resource.RLIMIT_NOFILE)[0]:
        return
    opened: list[int] = []
    try:
        for _ in range(_HEADROOM):
            opened.append(os.dup(2))
    finally:
        for fd in opened:
            os.close(fd)


def _child_request(attempt: _Attempt) -> ChildRequest:
    launch = attempt.launch
    return ChildRequest(
        process_id=launch.id,
        directory=launch.directory,
        pending=launch.pending,
        spec=launch.spec,
        argc=launch.program.argc,
        block=launch.program.block,
        born=launch.born,
        group=attempt.group,
        joins=launch.joins,
        terminal=launch.terminal,
        fds=launch.fds,
        holders=[holder.socket for holder in attempt.holders],
    )


def _answer(request: StartRequest, report: dict[str, Any]) -> None:
    for connection, rid in request.reply_to:
        connection.answer(rid, report)


def _refuse(request: StartRequest, reason: tuple[str, str]) -> None:
    for connection, rid in request.reply_to:
        connection.refuse(rid, *reason)


def _describe(stage: str, errno: int | None, message: str, request: StartRequest) -> tuple[str, str]:
    """Code and text of the refusal, in terms of the request."""
    spec, program = request.spec, request.program.name
    if errno is not None and is_disk_full(OSError(errno, message)):
        return "disk_full", f"the disk cannot be written, so no process can be started: {message}"
    if errno in (errors.EMFILE, errors.ENFILE):
        return "file_limit", f"no process can be started at the limit of open files of the keeper (pid {os.getpid()})"
    if stage == "sandbox":
        return "no_sandbox", f"{program}: cannot run in a sandbox: {message}"
    if stage == "cwd":
        return "failed_start", f"cannot run in {spec['cwd']}: {message}"
    if stage == "exec" and errno in (errors.ENOENT, errors.ENOTDIR):
        return "command_not_found", f"{program}: command not found"
    if stage == "exec" and errno in (errors.EACCES, errors.ENOEXEC, errors.EPERM, errors.EISDIR):
        return "not_executable", f"{program}: cannot be executed ({message})"
    if stage == "exec" and errno == errors.E2BIG:
        return "failed_start", f"{program}: command and environment are too long for this system"
    if stage == "nice":
        return "failed_start", f"{program}: cannot run with nice {spec['nice']}: {message} (CAP_SYS_NICE is needed)"
    if stage == "born":
        return "failed_start", f"{program}: the names of its cgroups are too long to be recorded"
    if stage == "limits":
        return "failed_start", f"{program}: cannot run under its limits: {message}"
    if stage == "terminal" or (stage == "setup" and spec["pty"]):
        return "no_pty", f"cannot open a terminal: {message}"
    return "failed_start", f"{program}: {message}"


class Launch:
    """A command that is about to run."""

    def __init__(self, process_id: str, directory: str, spec: Spec, program: Program) -> None:
        self.id = process_id
        self.directory = directory
        self.spec = spec
        self.program = program
        self.fds: Descriptors = {}
        self.born: bundle.Slot = {}
        self.pending = _new_pending()
        #: Ends that only the command keeps, open here until it has them.
        self._for_command: list[int] = []
        #: The groups that limit it, by controller.
        self.limits: Paths = {}
        #: The command's end of its terminal, where it has one.
        self.terminal: int | None = None
        self._has_directory = False
        #: The file for the spec, open for writing, where it was made ahead.
        self._spec: int | None = None
        #: What is added to the record of its start.
        self._also_born: bundle.Slot = {"run": 0}

    def take(self, prepared: Prepared) -> None:
        """Use what was made ahead. If that fails, `prepare` makes everything, or says what is wrong."""
        try:
            os.rename(prepared.directory, self.directory)
        except OSError:
            prepared.close()
            _discard(prepared.directory)
            return
        self.fds["out"], self._spec, self.pending = prepared.out, prepared.spec, prepared.pending
        self._has_directory = True

    def prepare(self, limits: ProcessLimits, group: str | None) -> None:
        """Create the bundle and open the streams. Raises OSError; `give_up` then removes what was created."""
        if not self._has_directory:
            self._make_directory()
        if self.spec["pty"]:
            self._open_terminal()
        else:
            self._open_pipes()
        if self.spec.get("limits"):
            self.limits = limits.make(self.spec["limits"])
        self._write_spec()
        if not self._has_directory:
            bundle.create(f"{self.directory}/{self.pending}", _BLANK)
        self._describe(group)

    @property
    def joins(self) -> list[str]:
        """The groups that limit it."""
        return sorted(set(self.limits.values()))

    def started(self) -> None:
        """The command has its own ends now: close ours."""
        for fd in self._for_command:
            os.close(fd)
        self._for_command.clear()

    def give_up(self) -> None:
        """Close and remove everything."""
        self._close()
        bundle.remove(self.directory)

    def _describe(self, group: str | None) -> None:
        """The identity of the command, but for pid and start time. It counts once the child has claimed the bundle."""
        spec = self.spec
        self.born = {
            "boot": kernel.boot_id(),
            "at": time.time(),
            "group": group_of(self.limits, group),
            "pty": spec["pty"],
            "split": spec["split"],
            "stdin": spec["stdin"] or spec["pty"],
            "cap": spec["log_cap"],
            **self._also_born,
        }
        if self.limits:
            self.born["limits"] = self.limits

    def _close(self) -> None:
        self.started()
        for fd in self.fds.values():
            os.close(fd)
        self.fds.clear()
        if self._spec is not None:
            os.close(self._spec)
            self._spec = None

    def _make_directory(self) -> None:
        os.mkdir(self.directory, 0o700)

    def _write_spec(self) -> None:
        fd, self._spec = self._spec, None
        bundle.write_and_close(
            bundle.open_new(f"{self.directory}/{bundle.SPEC}") if fd is None else fd, self.program.text
        )

    def _make_fifo(self, name: str) -> str:
        path = f"{self.directory}/{name}"
        os.mkfifo(path, 0o600)
        return path

    def _open_terminal(self) -> None:
        self.fds["pty"], self.terminal = os.openpty()
        self._for_command.append(self.terminal)
        master = self.fds["pty"]
        kernel.set_window_size(master, self.spec["cols"], self.spec["rows"])
        self.fds["outr"], self.fds["outw"] = os.pipe()
        self.fds["inr"], self.fds["inw"] = os.pipe()
        for fd in self.fds.values():
            os.set_blocking(fd, False)
        self.fds["journal"] = Journal.create().fd

    def _open_pipes(self) -> None:
        for name in ("out", "err") if self.spec["split"] else ("out",):
            if name not in self.fds:
                self._make_fifo(bundle.FIFO[name])
                self.fds[name] = open_fifo(self.directory, name)
        if self.spec["stdin"]:
            fifo = self._make_fifo(bundle.STDIN)
            # With a reader of our own, the write end opens at once; the command opens its own.
            self._for_command.append(os.open(fifo, os.O_RDWR | os.O_CLOEXEC))
            self.fds["stdin"] = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self.fds["journal"] = Journal.create().fd


class Relaunch(Launch):
    """The next run of a command, in its bundle: the log continues, the state is new.

    At every moment the bundle records either the last run or the claimed next one. The old state is set aside, not
    overwritten, and is restored when the next run never starts. `born` is added to the record of the start.
    """

    def __init__(self, process_id: str, keeper_dir: KeeperDir, spec: Spec, program: Program, born: bundle.Slot) -> None:
        super().__init__(process_id, keeper_dir.live(process_id), spec, program)
        self._done_directory = keeper_dir.done(process_id)
        self._also_born = born

    def give_up(self) -> None:
        """Put the bundle back as the last run left it."""
        self._close()
        if os.path.isdir(self.directory):
            bundle.void_pending(self.directory)
            if not os.path.exists(f"{self.directory}/{bundle.STATE}"):
                bundle.restore_state(self.directory)
            os.rename(self.directory, self._done_directory)

    def _make_directory(self) -> None:
        if not os.path.isdir(self.directory):
            os.rename(self._done_directory, self.directory)
        failpoints.reach("rerun-moved")
        bundle.set_state_aside(self.directory, self._also_born["run"] - 1)
        failpoints.reach("rerun-state-aside")

    def _write_spec(self) -> None:
        """It stays the same."""
        failpoints.reach("rerun-files-made")

    def _make_fifo(self, name: str) -> str:
        """Rename it over the old one, so that there always is one: a new keeper opens it by name."""
        path = f"{self.directory}/{name}"
        bundle.unlink(f"{path}.new")
        os.mkfifo(f"{path}.new", 0o600)
        os.rename(f"{path}.new", path)
        return path
