"""Starts commands. It keeps spares (prefork children) and nests (preallocated bundles) ready: a start takes both."""

from __future__ import annotations

import errno as errors
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast_keeper import bundle, failpoints, log
from holdfast_keeper.control import ReplyTo
from holdfast_keeper.fd_store import Descriptors
from holdfast_keeper.held_command import HeldCommand, new_report
from holdfast_keeper.launch import Launch, Nest
from holdfast_keeper.limits import oom_kills
from holdfast_keeper.loop import READ
from holdfast_keeper.nursery import Nursery
from holdfast_keeper.pump import is_disk_full
from holdfast_keeper.relaunch import Relaunch
from holdfast_keeper.spare import Spare

if TYPE_CHECKING:
    from holdfast_keeper.keeper import Keeper

#: Enough for an agent that starts a few commands at once. A larger burst waits for the nursery (the fork server).
_READY_COUNT = 3
#: After a start, so that a fork does not compete for a processor with the command, or with its exit.
_REFILL_PAUSE = 0.003
#: A start is tried this often when its spare was killed: more often than there are spares.
_TRIES = _READY_COUNT + 2


class _Pair(NamedTuple):
    """A spare with its nest: all that a start needs."""

    spare: Spare
    nest: Nest


class StartRequest(NamedTuple):
    """A start that was requested, and the requests to answer."""

    id: str
    spec: dict[str, Any]
    reply_to: list[ReplyTo]
    before: dict[str, Any] | None = None
    """The report of the run before, where the command is run again."""
    born: bundle.Slot = {}  # noqa: RUF012 - never changed
    """What is added to the record of the start then: the number of the run, among others."""
    tries: int = _TRIES


class _Attempt(NamedTuple):
    request: StartRequest
    launch: Launch
    spare: Spare


class Starter:
    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._ready: list[_Pair] = []
        #: Starts for which no spare was ready.
        self._waiting: dict[str, StartRequest] = {}
        self._under_way: dict[str, _Attempt] = {}
        self._is_refilling = False
        self._nests = f"{keeper.dir.path}/nests"
        self._nest_count = 0
        os.makedirs(self._nests, mode=0o700, exist_ok=True)
        for name in os.listdir(self._nests):
            try:
                bundle.remove(f"{self._nests}/{name}")
            except OSError as failed:  # a read-only disk; the new nests have other names
                log.write(f"keeper: {failed}")
        self._nursery = Nursery(keeper.loop, keeper.dir.file_limit, self._spare_came, self._no_spare)

    @property
    def is_busy(self) -> bool:
        return bool(self._under_way or self._waiting)

    def groups(self) -> set[str]:
        """The cgroups that are in use though no held command is in them yet."""
        attempts = self._under_way.values()
        spares = [pair.spare for pair in self._ready] + [attempt.spare for attempt in attempts]
        limits = {path for attempt in attempts for path in attempt.launch.limits.values()}
        return {spare.group for spare in spares if spare.group is not None} | limits | self._nursery.groups()

    def under_way(self) -> dict[str, tuple[Descriptors, int]]:
        """Descriptors and pid of commands that are being started: holders must have these as well."""
        return {key: (attempt.launch.fds, attempt.spare.pid) for key, attempt in self._under_way.items()}

    def start(self, reply_to: ReplyTo, process_id: str, spec: dict[str, Any]) -> None:
        """Start a command and answer when it runs. The same id again is the same start."""
        known = self._keeper.report(process_id)
        if known is not None:
            reply_to[0].answer(reply_to[1], known)
        elif process_id in self._under_way:
            self._under_way[process_id].request.reply_to.append(reply_to)
        elif process_id in self._waiting:
            self._waiting[process_id].reply_to.append(reply_to)
        else:
            self._dispatch(StartRequest(process_id, spec, [reply_to]))

    def rerun(self, request: StartRequest) -> None:
        """Run a command again whose bundle is archived, and answer when it runs. A repeated request joins the first."""
        known = self._request(request.id)
        if known is None:
            self._dispatch(request)
        elif known.born == request.born:
            known.reply_to.extend(request.reply_to)
        else:
            _refuse(request, ("not_now", f"{request.id} is just being started"))

    def report_before(self, process_id: str) -> dict[str, Any] | None:
        """The report of the last run of a command that is being run again."""
        request = self._request(process_id)
        return request.before if request is not None else None

    def _request(self, process_id: str) -> StartRequest | None:
        attempt = self._under_way.get(process_id)
        return attempt.request if attempt is not None else self._waiting.get(process_id)

    def refill_soon(self) -> None:
        if not self._is_refilling and len(self._ready) + self._nursery.on_order < _READY_COUNT:
            self._is_refilling = True
            self._keeper.loop.after(_REFILL_PAUSE, self._refill)

    def dismiss(self) -> None:
        self._nursery.close()
        for pair in self._ready:
            pair.spare.dismiss()
            pair.nest.discard()
        for attempt in self._under_way.values():
            attempt.spare.conversation.close()
            attempt.launch.started()
        self._ready.clear()

    def _refill(self) -> None:
        self._is_refilling = False
        try:
            self._nursery.order(self._keeper.groups.make())
        except OSError:
            return  # no disk space, no memory: the next start reports it
        self.refill_soon()

    def _dispatch(self, request: StartRequest) -> None:
        """Start it at once if a spare is ready, else as soon as one is."""
        if self._ready:
            self._attempt(request, self._ready.pop(0))
            return
        self._waiting[request.id] = request
        try:
            if self._nursery.on_order < len(self._waiting):
                self._nursery.order(self._keeper.groups.make())
        except OSError as failed:
            self._no_spare(failed)

    def _spare_came(self, spare: Spare) -> None:
        self._nest_count += 1
        try:
            pair = _Pair(spare, Nest(f"{self._nests}/{os.getpid()}-{self._nest_count}", spare.pid))
            pair.nest.settle(spare)
        except OSError as failed:
            spare.dismiss()
            self._no_spare(failed)
            return
        if self._waiting:
            self._attempt(self._waiting.pop(next(iter(self._waiting))), pair)
        else:
            self._ready.append(pair)

    def _no_spare(self, failed: OSError) -> None:
        """No spare can be forked: refuse all starts that wait for one."""
        for request in self._waiting.values():
            _refuse(request, _describe("setup", failed.errno, failed.strerror or str(failed), request.spec))
        self._waiting.clear()

    def _attempt(self, request: StartRequest, pair: _Pair) -> None:
        spare = pair.spare
        launch = self._launch(request, pair.nest)
        try:
            launch.prepare()
            launch.limit(self._keeper.limits)
            launch.write_spec()
            failpoints.reach("start-prepared")
            launch.write_born(spare)
            self._keeper.deposit(request.id, launch.fds, spare.pid)
            failpoints.reach("start-deposited")
            spare.become(launch.directory, launch.terminal)
            failpoints.reach("start-released")
        except OSError as failed:
            spare.conversation.close()
            launch.fds.setdefault("pidfd", spare.pidfd)
            self._withdraw(launch)
            if isinstance(failed, ConnectionError) and request.tries > 1:  # the spare was killed while it waited
                self._dispatch(request._replace(tries=request.tries - 1))
                return
            _refuse(request, _describe("setup", failed.errno, failed.strerror or str(failed), request.spec))
            return
        attempt = _Attempt(request, launch, spare)
        self._under_way[request.id] = attempt
        self._keeper.loop.watch(spare.conversation.fileno(), READ, lambda _: self._settle(attempt))

    def _launch(self, request: StartRequest, nest: Nest) -> Launch:
        keeper_dir = self._keeper.dir
        if request.before is None:
            return Launch(request.id, keeper_dir.live(request.id), request.spec, nest)
        self._keeper.quota.forget(keeper_dir.done(request.id))
        return Relaunch(request.id, keeper_dir, request.spec, nest, request.born)

    def _settle(self, attempt: _Attempt) -> None:
        """The spare has reported why it failed, or closed the connection because it is the command now."""
        launch, spare = attempt.launch, attempt.spare
        failure = spare.failure()
        self._keeper.loop.unwatch(spare.conversation.fileno())
        spare.conversation.close()
        del self._under_way[launch.id]
        self.refill_soon()
        if failure is None and os.path.exists(f"{launch.directory}/{bundle.STATE}"):
            self._started(attempt)
            return
        was_too_small = oom_kills(launch.limits) > 0
        self._withdraw(launch)
        was_killed = failure is None and not was_too_small  # before it claimed the bundle
        if was_killed and attempt.request.tries > 1:
            self._dispatch(attempt.request._replace(tries=attempt.request.tries - 1))
            return
        stage, errno, message = failure or ("setup", None, "it was killed before it could start")
        if failure is None and was_too_small:
            stage, message = "limits", "that memory is too little to start anything"
        _refuse(attempt.request, _describe(stage, errno, message, launch.spec))
        self._keeper.exit_if_done()

    def _started(self, attempt: _Attempt) -> None:
        launch = attempt.launch
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
        if launch.born["group"] != attempt.spare.group:
            self._keeper.sweep_groups_later()  # it left the group that it was forked in

    def _withdraw(self, launch: Launch) -> None:
        """Undo a start. Its spare exits and is reaped as any child; its cgroup is swept later."""
        self._keeper.withdraw(launch.id)
        try:
            launch.give_up()
        except OSError as failed:  # a full disk: the bundle is right where it is, and the next keeper moves it
            log.write(f"keeper: {launch.id}: {failed}")
        if isinstance(launch, Relaunch):
            self._keeper.quota.archive(self._keeper.dir.done(launch.id))
        self._keeper.sweep_groups_later()


def _answer(request: StartRequest, report: dict[str, Any]) -> None:
    for connection, rid in request.reply_to:
        connection.answer(rid, report)


def _refuse(request: StartRequest, reason: tuple[str, str]) -> None:
    for connection, rid in request.reply_to:
        connection.refuse(rid, *reason)


def _describe(stage: str, errno: int | None, message: str, spec: dict[str, Any]) -> tuple[str, str]:
    """Code and text of the refusal, in terms of the request."""
    program = spec["argv"][0]
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
    if stage == "limits":
        return "failed_start", f"{program}: cannot run under its limits: {message}"
    if stage == "terminal" or (stage == "setup" and spec["pty"]):
        return "no_pty", f"cannot open a terminal: {message}"
    return "failed_start", f"{program}: {message}"
