"""Starts commands: creates the bundle, has a child forked, and answers when the child has become the command."""

from __future__ import annotations

import errno as errors
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast_keeper import bundle, failpoints, groups, log
from holdfast_keeper.control import ReplyTo
from holdfast_keeper.fd_store import Descriptors, HolderLink
from holdfast_keeper.fork_server import ChildAnswer, ChildRequest, Forks
from holdfast_keeper.held_command import HeldCommand, new_report
from holdfast_keeper.launch import Launch, Program, Relaunch
from holdfast_keeper.limits import oom_kills
from holdfast_keeper.pump import is_disk_full

if TYPE_CHECKING:
    from holdfast_keeper.keeper import Keeper

#: A start is tried this often when its child, or the fork server, was killed.
_TRIES = 5


class StartRequest(NamedTuple):
    """A start that was requested, and the requests to answer."""

    id: str
    spec: dict[str, Any]
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


class Starter:
    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._under_way: dict[str, _Attempt] = {}
        self.forks = Forks(keeper.loop, keeper.dir.path, keeper.dir.file_limit)

    @property
    def is_busy(self) -> bool:
        return bool(self._under_way)

    def groups(self) -> set[str]:
        """The cgroups that are in use though no held command is in them yet."""
        attempts = self._under_way.values()
        limits = {path for attempt in attempts for path in attempt.launch.limits.values()}
        return {attempt.group for attempt in attempts if attempt.group is not None} | limits

    def under_way(self) -> dict[str, Descriptors]:
        """Descriptors of commands that are being started: holders must have these as well."""
        return {key: attempt.launch.fds for key, attempt in self._under_way.items()}

    def is_starting(self, pid: int) -> bool:
        """Whether this is the pid of a command that runs, though the fork server has not said so yet."""
        states = (bundle.read_state(attempt.launch.directory) for attempt in self._under_way.values())
        return any(state is not None and (state.born or {}).get("pid") == pid for state in states)

    def start(self, reply_to: ReplyTo, process_id: str, spec: dict[str, Any], program: Program) -> None:
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
        for attempt in self._under_way.values():
            attempt.launch.started()

    def _attempt(self, request: StartRequest) -> None:
        launch = self._launch(request)
        group = self._keeper.groups.make()
        attempt = _Attempt(request, launch, group, self._keeper.ready_holders())
        try:
            launch.prepare(self._keeper.limits, group)
            failpoints.reach("start-prepared")
            self.forks.run(_child_request(attempt), lambda answer: self._settle(attempt, answer))
        except OSError as failed:
            self._withdraw(attempt)
            _refuse(request, _describe("setup", failed.errno, failed.strerror or str(failed), request))
            return
        self._under_way[request.id] = attempt
        failpoints.reach("start-requested")

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
        stage, errno, message = answer.stage, answer.errno, os.strerror(answer.errno)
        if was_too_small:
            stage, message = "limits", "that memory is too little to start anything"
        elif was_killed:
            stage, message = "setup", "it was killed before it could start"
        _refuse(request, _describe(stage, errno, message, request))
        self._keeper.exit_if_done()

    def _started(self, attempt: _Attempt, answer: ChildAnswer) -> None:
        launch = attempt.launch
        launch.born = {"pid": answer.pid, "start": answer.start, **launch.born}
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
        left = [group for group in made if group is not None and not groups.remove(group)]
        if left:
            self._keeper.sweep_groups_later()


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
