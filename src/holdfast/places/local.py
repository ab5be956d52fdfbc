"""This machine: anchor and keeper are started here and reached over Unix sockets; processes are read from /proc."""

from __future__ import annotations

import asyncio
import fcntl
import os
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import holdfast_keeper
from holdfast.errors import CommandNotFound, NotExecutable, StartFailed
from holdfast.machine import cgroups, http, listeners, proc, readers
from holdfast.model.addresses import HttpTarget
from holdfast.model.probes.prompts import Terminal
from holdfast.model.process import HeldProcess, Leftover, ProcessId
from holdfast.places.base import (
    Activity,
    CallerMarks,
    ExecutionPlace,
    HelperResult,
    InputState,
    PortOwner,
    ProcessInfo,
    Sudo,
    start_program,
)
from holdfast.places.bubblewrap import sandbox_argv
from holdfast.places.keeper_link import Note
from holdfast.places.login_env import LoginEnvironment
from holdfast.places.ports import LocalPortWatch
from holdfast.places.sampler import UsageSampler
from holdfast.version import VERSION, is_older
from holdfast.wire.frames import peer_credentials
from holdfast_keeper.protocol import Message

#: How long a keeper that was just started may take until it listens.
_START_BUDGET = 10.0
_FIRST_LOOK = 0.005
_SLOWEST_LOOK = 0.1

CONTROL = "keeper.sock"
FD_STORE = "depot.sock"
_LOCK = "keeper.lock"
_LOG = "keeper.log"
_LARGEST_LOG = 1 << 20

#: In `offers` of a keeper that can execute a newer release, and the argument with which that one is only loaded.
_RENEW = "renew"
_CHECK = "--check"

#: Without site packages: a keeper starts in half the time and needs none of them. The limit on open files is the one
#: that the daemon was started with, because commands inherit it.
_BOOT = """\
import resource, sys
sys.path.insert(0, sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv.pop(1)), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
from holdfast_keeper.__main__ import main
main()
"""

#: Another program of those that are carried to places, without site packages as well.
_BOOT_PROGRAM = """\
import sys
sys.path.insert(0, sys.argv.pop(1))
from holdfast.places.carried import main
main(sys.argv[1], sys.argv[2:])
"""

#: Of a helper: bytes of its output that are kept, and how long its output is awaited when it has ended.
_HELPER_OUTPUT = 2000
_DRAIN_BUDGET = 0.2
#: uvloop cannot set the umask of a child.
_WITH_UMASK = ("/bin/sh", "-c", 'umask "$0" && exec "$@"')

_LOCAL_FLAGS = 3
#: The number of the terminal that a master belongs to (TIOCGPTN); `termios` has no name for it.
_GET_TERMINAL_NUMBER = 0x80045430


class LocalPlace(ExecutionPlace):
    """The anchor and keeper of one directory. `environ` is the whole environment that they get.

    `running` gives the processes to measure. The login environment is kept in `login_file`. `daemon_environ` is added
    for a daemon that the keeper starts. `keeper_argv` is the command line of the keeper, to which its arguments are
    added; None for that of this interpreter. `hidden` are directories that no sandbox shows.
    """

    name = "local"

    def __init__(
        self,
        directory: str,
        environ: Mapping[str, str],
        *,
        hello: Message,
        note: Note,
        running: Callable[[], Iterable[HeldProcess]],
        login_file: str,
        file_limit: int | None = None,
        outage: float = 15.0,
        daemon_environ: Mapping[str, str] = MappingProxyType({}),
        keeper_argv: Sequence[str] | None = None,
        hidden: Sequence[str] = (),
    ) -> None:
        super().__init__(directory, hello, note, outage)
        self._environ = dict(environ)
        self.keeper_argv = keeper_argv
        self._daemon_environ = daemon_environ
        self._hidden = (directory, *hidden)
        self._file_limit = file_limit or resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        #: The process that made the socket of the keeper: its anchor, or the keeper itself.
        self._listener_pids: set[int] = set()
        self._group_name = proc.group_name(directory)
        self._anchors: list[subprocess.Popen[bytes]] = []
        home = self._environ.get("HOME", "")
        self.default_directory = home if os.path.isdir(home) else "/"
        self.usage = UsageSampler(running, lambda: self.keeper.about.get("cgroup"))
        self.login = LoginEnvironment(login_file, self._environ, self.default_directory, note)

    async def connect(self) -> socket.socket:
        """Starts an anchor when no keeper listens, and again when that one ended without a keeper."""
        try:
            sock = connect_socket(self.directory, CONTROL, socket.SOCK_STREAM)
        except OSError:
            await asyncio.to_thread(self._start_anchor)
            sock = await self._await_keeper()
        line = [info.pid for info in proc.ancestors(peer_credentials(sock)[0])]
        self._listener_pids = {pid for pid in line if self.directory in proc.arguments(pid)}
        return sock

    @property
    def keeper_pids(self) -> set[int]:
        """The anchor is known before the keeper has answered: one that is stopped adopts all the same."""
        about = self.keeper.about
        return {pid for name in ("pid", "anchor_pid") if (pid := about.get(name))} | self._listener_pids

    async def connect_fd_store(self) -> socket.socket:
        return connect_socket(self.directory, FD_STORE, socket.SOCK_SEQPACKET)

    async def _await_keeper(self) -> socket.socket:
        pause = _FIRST_LOOK
        until = asyncio.get_running_loop().time() + _START_BUDGET
        while True:
            try:
                return connect_socket(self.directory, CONTROL, socket.SOCK_STREAM)
            except OSError:
                if asyncio.get_running_loop().time() > until:
                    raise
            await asyncio.sleep(pause)
            pause = min(pause * 2, _SLOWEST_LOOK)
            if pause == _SLOWEST_LOOK and not _is_held(self.directory):
                await asyncio.to_thread(self._start_anchor)

    def _start_anchor(self) -> None:
        """A new anchor, in a session of its own. It ends by itself where another one has the directory."""
        self._anchors = [anchor for anchor in self._anchors if anchor.poll() is None]
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        log = _open_log(f"{self.directory}/{_LOG}")
        try:
            anchor = subprocess.Popen(
                self._boot(self.directory, VERSION),
                cwd="/",
                env={**self._environ, **self._daemon_environ},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        finally:
            os.close(log)
        self._anchors.append(anchor)

    def _boot(self, *arguments: str) -> list[str]:
        """The command line of anchor and keeper of this release."""
        program = self.keeper_argv
        if program is None:
            source = os.path.dirname(os.path.dirname(os.path.abspath(holdfast_keeper.__file__)))
            program = [sys.executable, "-I", "-S", "-c", _BOOT, source]
        return [*program, str(self._file_limit), *arguments]

    async def renew_keeper(self) -> None:
        """Let anchor and keeper of an older release execute this one, where they can. Every command stays theirs."""
        if _RENEW not in self.keeper.about.get("offers", ()) or not is_older(self.keeper.release):
            return
        check = self._boot(_CHECK)
        done = await asyncio.to_thread(subprocess.run, check, env=self._environ, capture_output=True, check=False)
        if done.returncode != 0:  # it would take the commands along
            raise OSError(f"the new keeper does not start: {done.stderr[-200:].decode(errors='replace').strip()}")
        await self.keeper.request("renew", argv=self._boot(self.directory, VERSION))
        while True:
            await asyncio.sleep(_FIRST_LOOK)
            if not is_older(self.keeper.release):
                return

    def close(self) -> None:
        super().close()
        for anchor in self._anchors:
            anchor.poll()  # one that has ended is reaped

    # Measuring.

    async def members(self, process_id: ProcessId) -> list[ProcessInfo]:
        return await asyncio.to_thread(proc.look_at, await self.tree(process_id))

    async def command_lines(self, process_id: ProcessId) -> list[list[str]]:
        pids = await self.tree(process_id)
        return await asyncio.to_thread(lambda: [words for pid in pids if (words := proc.arguments(pid))])

    async def activity(self, process: HeldProcess) -> Activity:
        pids = await self.tree(process.id) if process.group is None else []
        return await self.read(self._activity, process, pids)

    def _activity(self, process: HeldProcess, pids: list[int]) -> Activity:
        used = cgroups.cpu_seconds(process.group) if process.group is not None else proc.cpu_seconds(pids)
        return Activity(self.output_bytes(process), used)

    async def wait_state(self, pid: int) -> str | None:
        return await asyncio.to_thread(proc.wait_state, pid)

    def port_watch(self, process: HeldProcess, port: int) -> LocalPortWatch:
        return LocalPortWatch(self.tree, process, port)

    async def port_owner(self, port: int) -> PortOwner | None:
        return await asyncio.to_thread(_port_owner, port)

    # Input, by the descriptors that the fd store holds for the keeper: nothing is read from them, nothing written.

    async def terminal(self, process: HeldProcess) -> Terminal | None:
        try:
            return _terminal(self.fd_store.held[process.id]["pty"])
        except (KeyError, OSError, termios.error):
            return None

    async def input_state(self, process: HeldProcess) -> InputState | None:
        held = self.fd_store.held.get(process.id, {})
        terminal, group = None, None
        try:
            if process.meta.pty:
                master = held["pty"]
                terminal, group = _terminal(master), os.tcgetpgrp(master)
                (number,) = struct.unpack("I", fcntl.ioctl(master, _GET_TERMINAL_NUMBER, bytes(4)))
                is_input = readers.is_terminal(number)
            else:
                is_input = readers.is_pipe(held["stdin"])
        except (KeyError, OSError, termios.error):
            return None
        pids = await self.tree(process.id)
        return InputState(terminal, await asyncio.to_thread(readers.reader_of, pids, is_input, group))

    # Identity.

    @property
    def boot_id(self) -> str:
        return proc.boot_id()

    is_alive = staticmethod(proc.is_alive)
    ancestors = staticmethod(proc.ancestors)

    def living(self, leftovers: tuple[Leftover, ...]) -> list[int]:
        return [leftover.pid for leftover in leftovers if proc.is_alive(leftover.pid, leftover.start)]

    def marks(self, pid: int) -> CallerMarks | None:
        groups, environ = proc.read_all(pid, "cgroup"), proc.read_all(pid, "environ")
        if groups is None or environ is None:
            return None
        held = next((word[12:] for word in environ.split(b"\0") if word.startswith(b"HOLDFAST_ID=")), None)
        return CallerMarks(proc.group_member(groups, self._group_name), None if held is None else os.fsdecode(held))

    async def sudo_above(self, pid: int) -> Sudo | None:
        return await asyncio.to_thread(proc.sudo_above, pid)

    # Commands.

    async def run_helper(
        self, argv: Sequence[str], spec: Mapping[str, Any], on_start: Callable[[int], None]
    ) -> HelperResult:
        child = await asyncio.create_subprocess_exec(
            *_WITH_UMASK,
            f"{spec['umask']:04o}",
            *argv,
            cwd=spec["cwd"],
            env=spec["env"],
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        on_start(child.pid)
        return await _outcome(child)

    async def open_program(self, program: str, *arguments: str) -> asyncio.subprocess.Process:
        source = os.path.dirname(os.path.dirname(os.path.abspath(holdfast_keeper.__file__)))
        boot = (sys.executable, "-I", "-S", "-c", _BOOT_PROGRAM, source)
        return await start_program([*boot, program, *arguments], self._environ)

    has_address = staticmethod(http.has_address)

    async def http_trouble(self, target: HttpTarget) -> str | None:
        return await http.trouble(target)

    def sandbox_argv(
        self, cwd: str, writable: Sequence[str], network: str, shown: Mapping[str, bool] | None = None
    ) -> list[str]:
        return sandbox_argv(cwd, writable, network, self._hidden, shown or {})

    async def shell_argv(self, text: str, shell: str | None, env: Mapping[str, str]) -> tuple[str, ...]:
        path = env.get("PATH", os.defpath)
        if not shell:
            return (_usual_shell(path), "-c", text)
        if shutil.which(shell, path=path) is not None:
            return (shell, "-c", text)
        # The error of the start would name the command, which is not at fault.
        if "/" in shell and os.path.exists(shell):
            raise NotExecutable(f"the shell {shell[:200]} cannot be executed", next="name another one with --shell")
        raise CommandNotFound(f"there is no shell {shell[:200]}", next="name another one with --shell")


async def _outcome(child: asyncio.subprocess.Process) -> HelperResult:
    assert child.stdout is not None
    output = bytearray()
    reader = asyncio.ensure_future(_read_end(child.stdout, output))
    try:
        code = await child.wait()
        await asyncio.wait({reader}, timeout=_DRAIN_BUDGET)  # a descendant may keep its output open
        return HelperResult(code, output.decode(errors="replace"))
    finally:
        reader.cancel()
        if child.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)


async def _read_end(stream: asyncio.StreamReader, output: bytearray) -> None:
    while data := await stream.read(1 << 16):
        output += data
        del output[:-_HELPER_OUTPUT]


def _port_owner(port: int) -> PortOwner | None:
    sockets = listeners.listening_sockets("self").get(port)
    if not sockets:
        return None
    line = list(proc.ancestors(listeners.owner_of(sockets) or 0))
    return PortOwner(line[0].pid, line[0].name, [info.pid for info in line]) if line else PortOwner(None, None, [])


@lru_cache(maxsize=64)
def _usual_shell(path: str) -> str:
    found = shutil.which("bash", path=path) or shutil.which("sh", path="/bin:/usr/bin")
    if found is None:
        raise StartFailed("there is no shell on this machine", next="give the command as an argv, or set `shell`")
    return found


def _terminal(master: int) -> Terminal:
    flags = termios.tcgetattr(master)[_LOCAL_FLAGS]
    return Terminal(bool(flags & termios.ECHO), bool(flags & termios.ICANON))


def connect_socket(directory: str, name: str, kind: socket.SocketKind) -> socket.socket:
    """A connection to a socket of the keeper of this directory. Raises OSError.

    Follows no symbolic link: what runs in a container could lead it to the keeper of this machine.
    """
    sock = socket.socket(socket.AF_UNIX, kind)
    sock.setblocking(False)
    # Through a descriptor: the path of a socket has at most 107 bytes.
    try:
        fd = os.open(f"{directory}/{name}", os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if not stat.S_ISSOCK(os.fstat(fd).st_mode):
                raise ConnectionRefusedError(f"{name} is not a socket")
            sock.connect(f"/proc/self/fd/{fd}")
        finally:
            os.close(fd)
    except OSError:
        sock.close()
        raise
    return sock


def _is_held(directory: str) -> bool:
    """Whether an anchor has locked the directory."""
    try:
        fd = os.open(f"{directory}/{_LOCK}", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _open_log(path: str) -> int:
    """The log of anchor and keeper, truncated when it has become long."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    if os.fstat(fd).st_size > _LARGEST_LOG:
        os.ftruncate(fd, 0)
    return fd
