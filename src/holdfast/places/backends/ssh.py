"""Hosts over SSH, through the user's own OpenSSH client and configuration.

One connection to a host, the control master, is shared by all that holdfast does there, also by other instances of the
user. The runtime is copied to the host once. Keeper, commands and logs there survive the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import shlex
import socket
import stat
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from holdfast import files
from holdfast.errors import BadValue
from holdfast.places.backend import Backend, BackendState, Options, PlaceSpec, Site
from holdfast.places.backends.host_shell import HostShell, ShellEnded, StepFailed
from holdfast.places.backends.options import Rule, a_file, a_text, a_whole_number, check_options
from holdfast.places.base import end_program, start_program
from holdfast.places.carry import archive, make_runtime, make_sources
from holdfast.places.mirrored import MirroredPlace
from holdfast.places.relay.link import RelayPeer, RelayProcess, start_relay

#: Until a command on the host has ended, and until everything was copied there.
_COMMAND_BUDGET = 40.0
_COPY_BUDGET = 600.0
#: The same for a host that has been used before, so that a connection that hangs is replaced soon.
_KNOWN_BUDGET = 20.0
#: Of a client that says its version.
_VERSION_BUDGET = 5.0
#: Of the removal of what earlier releases have left there.
_TIDY_BUDGET = 20.0
#: A control master that does not answer within this hangs.
_MASTER_BUDGET = 3.0
#: A connection without a sign of life for ALIVE_INTERVAL * ALIVE_COUNT seconds is cut.
_ALIVE_INTERVAL, _ALIVE_COUNT = 5, 3
#: How long a control master is kept when nothing uses it.
_PERSIST = 60
_CONNECT_TIMEOUT = 10
#: The path of a socket has at most 107 bytes, of which ssh uses 17 for a name that it makes first.
_LONGEST_SOCKET = 107 - 17

_FACTS = "host.json"
#: Runs a program of the sources.
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from holdfast.places.carried import main; "
    "main(sys.argv[1], sys.argv[2:])"
)
_NOT_INSTALLED = "ssh is not installed: apt-get install openssh-client"

_HOST = re.compile(
    r"(?:ssh://)?(?:[A-Za-z0-9_][A-Za-z0-9_.+-]*@)?(?:[A-Za-z0-9_:][A-Za-z0-9_.:%-]*|\[[0-9A-Fa-f.:%a-z]+\](?::\d+)?)"
)
#: Within single quotes, these characters mean the same to every login shell.
_QUOTABLE = re.compile(r"[^'\\!\x00-\x1f\x7f]*")


# Options.


def _host(value: object) -> str:
    if not isinstance(value, str) or len(value) > 255 or not _HOST.fullmatch(value):
        raise ValueError("must be a destination of ssh, such as me@host")
    return value


def _directory(value: object) -> str:
    if not isinstance(value, str) or len(value) > 1000 or not value.startswith(("/", "~/")):
        raise ValueError("must be a directory of the host: an absolute path, or one that begins with ~/")
    if not _QUOTABLE.fullmatch(value):
        raise ValueError("must not contain quotes, backslashes, exclamation marks or control characters")
    return value


_RULES: dict[str, Rule] = {
    "host": (_host, None),
    "port": (a_whole_number(1, 65535, "a number from 1 to 65535"), None),
    "user": (a_text("the name of a user", r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,62}\$?"), None),
    "identity": (a_file, None),
    "config": (a_file, None),
    "directory": (_directory, None),
}


# The client.


class SshFailed(ConnectionError):
    """The host cannot be used now. One line, which names the next step."""


class SshClient:
    """Runs `ssh` for one host. `environ` is that of the client, `backend` the name for messages."""

    def __init__(self, backend: str, options: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        self.host = str(options["host"])
        self._backend = backend
        self._options = options
        self.environ = dict(environ)
        if "SSH_AUTH_SOCK" in os.environ:
            self.environ.setdefault("SSH_AUTH_SOCK", os.environ["SSH_AUTH_SOCK"])
        self.control_path = self._control_path()

    def argv(self, *options: str, command: Sequence[str] = (), is_batch: bool = True) -> list[str]:
        """The command line of the client, with the login of the configuration."""
        control = self.control_path.replace("%", "%%") if self.control_path is not None else "none"
        settings = {
            "BatchMode": "yes" if is_batch else "no",
            "ControlMaster": "auto",
            "ControlPath": control,
            "ControlPersist": _PERSIST,
            "ServerAliveInterval": _ALIVE_INTERVAL,
            "ServerAliveCountMax": _ALIVE_COUNT,
            "ConnectTimeout": _CONNECT_TIMEOUT,
            "ClearAllForwardings": "yes",
            "ForwardAgent": "no",
            "ForwardX11": "no",
            "RemoteCommand": "none",
            "RequestTTY": "no",
            "LogLevel": "ERROR",
        }
        given = {"port": "-p", "user": "-l", "identity": "-i", "config": "-F"}
        words = [
            word for name, flag in given.items() if self._options.get(name) for word in (flag, str(self._options[name]))
        ]
        words += [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
        return ["ssh", *words, *options, "--", self.host, *([" ".join(command)] if command else [])]

    def login_argv(self) -> list[str]:
        """The command that the user runs to authenticate: a control master that stays in the background."""
        return self.argv("-o", "ControlMaster=yes", "-o", "ControlPersist=yes", "-f", "-N", is_batch=False)

    async def _run(self, argv: Sequence[str], budget: float) -> tuple[int, bytes]:
        # Not pipes: other processes, such as the control master, may keep those open, and then the end of the client
        # is not noticed.
        output = os.memfd_create("ssh", os.MFD_CLOEXEC)
        try:
            null = asyncio.subprocess.DEVNULL
            child = await asyncio.create_subprocess_exec(
                *argv, stdin=null, stdout=output, stderr=null, env=self.environ, start_new_session=True
            )
            try:
                async with asyncio.timeout(budget):
                    await child.wait()
            except TimeoutError:
                raise SshFailed(f"{self.host} has not answered within {budget:g} s") from None
            finally:
                await end_program(child)
            return child.returncode or 0, os.pread(output, os.fstat(output).st_size, 0)
        except FileNotFoundError:
            raise SshFailed(_NOT_INSTALLED) from None
        finally:
            os.close(output)

    async def drop_hung_master(self) -> None:
        """A control master that does not answer is replaced: the next client makes another one."""
        path = self.control_path
        if path is None or not os.path.exists(path):
            return
        with contextlib.suppress(SshFailed):
            await self._run(self.argv("-O", "check"), _MASTER_BUDGET)
            return
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    async def failure(self, errors: str) -> SshFailed:
        """What ssh said, and the next step."""
        last, host = _last_line(errors).removeprefix("ssh: ") or "ssh failed without a reason", self.host
        lowered = errors.lower()
        if "host key" in lowered or "host identification" in lowered:
            is_changed = "identification has changed" in lowered
            what = "has changed" if is_changed else "is not known"
            return SshFailed(f"the host key of {host} {what}; compare it, then: {await self._key_command(is_changed)}")
        if "permission denied" in lowered or "authentication fail" in lowered:
            return SshFailed(f"{host} does not accept the login; try: holdfast backends login {self._backend} ({last})")
        if "could not resolve" in lowered:
            return SshFailed(f"{last}; check `host` of the backend {self._backend}")
        return SshFailed(f"{host} cannot be reached: {last}")

    async def _key_command(self, is_changed: bool) -> str:
        """The command that makes the key of the host known, by what the configuration says of the host."""
        code, output = await self._run(self.argv("-G"), _VERSION_BUDGET)
        said: dict[str, str] = {}
        for line in output.decode(errors="replace").splitlines() if code == 0 else ():
            said.setdefault(*line.partition(" ")[::2])
        name, port = said.get("hostname", ""), said.get("port", "22")
        file = shlex.quote(said.get("userknownhostsfile", "").partition(" ")[0])
        entry = shlex.quote(name if port == "22" else f"[{name}]:{port}")
        forget = f"ssh-keygen -R {entry} -f {file} && " if is_changed else ""
        if not name or said.keys() & {"hostkeyalias", "proxyjump", "proxycommand"}:  # ssh-keyscan knows none of these
            given = {"config": "-F", "port": "-p", "user": "-l"}
            words = [
                w for key, flag in given.items() if self._options.get(key) for w in (flag, str(self._options[key]))
            ]
            return shlex.join(["ssh", *words, self.host])
        return f"{forget}ssh-keyscan{'' if port == '22' else f' -p {port}'} {shlex.quote(name)} >> {file}"

    def _control_path(self) -> str | None:
        """In a short directory of our own; None where there is none, and each client connects by itself."""
        which = [self._options.get(name) for name in ("host", "port", "user", "identity", "config")]
        name = hashlib.sha256(json.dumps(which).encode()).hexdigest()[:16]
        for parent in (self.environ.get("XDG_RUNTIME_DIR"), "/tmp"):  # the owner is checked
            if not parent:
                continue
            directory = f"{parent}/holdfast-ssh-{os.getuid()}"
            if len(os.fsencode(f"{directory}/{name}")) <= _LONGEST_SOCKET and _is_private(directory):
                return f"{directory}/{name}"
        return None


def _is_private(directory: str) -> bool:
    """Make a directory that only this user can use; False where that fails."""
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(directory, 0o700)
        found = os.lstat(directory)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "".join(one if one.isprintable() else " " for one in lines[-1])[:300] if lines else ""


def _quote(word: str) -> str:
    """A word for every login shell. Raises SshFailed for one that cannot be quoted for all of them."""
    if not _QUOTABLE.fullmatch(word):
        raise SshFailed(f"the path {word[:200]!r} there has characters that cannot be used: set `directory`")
    return f"'{word}'"


# The host.


class HostFacts(NamedTuple):
    """Where things are on the host."""

    state: str
    """The directory of the place."""
    at: str
    """The directory of the sources, or of the runtime. Its name has the digest of what is in it."""
    python: str | None
    """The host's own Python, which runs the sources; None where the runtime was carried there."""
    prefix: list[str]
    """Words before the command line of the keeper."""


class SshPlace(MirroredPlace):
    """One directory on a host."""

    def __init__(self, spec: PlaceSpec, site: Site) -> None:
        super().__init__(site.directory, hello={**site.hello, "revive": None}, note=site.note, running=site.running)
        self.name, self.key = spec.backend, spec.key
        self.client = SshClient(spec.backend, spec.options, site.environ)
        self._spec = spec
        self._site = site
        self.link.explain = self._explain
        #: Whether the relay has answered since it was last started: else the host is asked first.
        self._is_proven = True
        #: The directory there that was just copied, until those that it replaces are removed.
        self._copied: str | None = None

    async def open_relay(self) -> RelayProcess:
        await self.client.drop_hung_master()
        facts = await asyncio.to_thread(self._load_facts)
        is_proven, self._is_proven = self._is_proven, False
        if facts is not None and is_proven:
            return await start_relay(self.client.argv(command=await self._relay(facts)), self.client.environ)
        shell, facts = await self._prepare(_COMMAND_BUDGET if facts is None else _KNOWN_BUDGET)
        return await shell.become(" ".join(await self._relay(facts)))

    async def connect(self) -> socket.socket:
        try:
            return await super().connect()
        except FileNotFoundError:  # the Python that runs the keeper is gone; this relay still has the descriptors
            shell, facts = await self._prepare(_KNOWN_BUDGET)
            await shell.close()
            keeper = [*facts.prefix, *await self._program(facts, "keeper")]
            await self.link.call("use_keeper", argv=keeper)
            return await super().connect()

    async def open_program(self, program: str, *arguments: str) -> asyncio.subprocess.Process:
        """Beside the relay, on the same connection to the host."""
        facts = await asyncio.to_thread(self._load_facts)
        if facts is None:
            shell, facts = await self._prepare(_COMMAND_BUDGET)
            await shell.close()
        command = _shell_words(await self._program(facts, program, *arguments))
        return await start_program(self.client.argv(command=command), self.client.environ)

    async def _relay(self, facts: HostFacts) -> list[str]:
        keeper = await self._program(facts, "keeper")
        return _shell_words(await self._program(facts, "relay", facts.state, *facts.prefix, *keeper))

    async def _program(self, facts: HostFacts, name: str, *arguments: str) -> list[str]:
        if facts.python is not None:
            return [facts.python, "-I", "-S", "-c", _BOOT, facts.at, name, *arguments]
        runtime = await asyncio.to_thread(make_runtime, self._site.cache)
        return runtime.argv(facts.at, name, *arguments)

    async def _begin(self, peer: RelayPeer) -> None:
        await super()._begin(peer)
        self._is_proven = True
        if (copied := self._copied) is not None:  # those of earlier releases are not needed any more
            self._copied = None
            await peer.call("tidy", {"path": copied}, _TIDY_BUDGET)

    async def _prepare(self, budget: float) -> tuple[HostShell, HostFacts]:
        """Ask what the host is like, and copy there what is missing. Raises SshFailed."""
        options = self._spec.options
        directory = options.get("directory") or f"~/.local/state/holdfast/places/{_file_name(self._site.instance)}"
        chosen = "yes" if options.get("directory") else ""
        words = ["exec", "sh", "-s", "--", _quote(directory), _quote(chosen)]
        try:
            relay = await start_relay(self.client.argv(command=words), self.client.environ)
        except FileNotFoundError:
            raise SshFailed(_NOT_INSTALLED) from None
        shell = HostShell(relay)
        try:
            asking = asyncio.ensure_future(shell.ask(budget))
            sources = asyncio.to_thread(make_sources, True)  # meanwhile
            await asyncio.gather(asking, sources, return_exceptions=True)
            said = asking.result()
            facts = await self._facts(said, directory)
            if os.path.basename(facts.at) not in said["has"].split():
                await self._copy(shell, facts, is_alike=said["machine"] == _machine(), is_packed="gzip" in said)
            await asyncio.to_thread(self._save_facts, facts)
        except BaseException as failed:
            await shell.close()
            if isinstance(failed, ShellEnded):
                raise await self._explained(failed) from None
            if isinstance(failed, StepFailed):
                raise SshFailed(f"{self.client.host}: {failed}") from None
            if isinstance(failed, TimeoutError):
                raise SshFailed(f"{self.client.host} has not answered within {budget:g} s") from None
            raise
        return shell, facts

    async def _explain(self, code: int, said: str) -> SshFailed | None:
        """Why a host that was used before cannot be reached; None where ssh itself has not failed."""
        return await self.client.failure(said) if code == 255 else None

    async def _explained(self, ended: ShellEnded) -> SshFailed:
        if (failed := await self._explain(ended.code, ended.said)) is not None:
            return failed
        if ended.code == 0:
            return SshFailed(f"{self.client.host} runs no commands: its login shell has not started sh")
        said = _last_line(ended.said) or f"the command there ended with {ended.code}"
        return SshFailed(f"{self.client.host}: {said}")

    async def _facts(self, said: Mapping[str, str], directory: str) -> HostFacts:
        """What to run there. The host's own Python runs the sources, which are small; else the runtime is carried."""
        host = self.client.host
        if said.get("system") != "Linux":
            raise SshFailed(f"{host} runs {said.get('system', 'an unknown system')}, and holdfast needs Linux there")
        if "state" not in said:
            raise SshFailed(
                f"{host}: {directory} cannot be written; set `directory` of the backend {self._spec.backend}"
            )
        if "runtimes" not in said:
            raise SshFailed(
                f"{host}: no program can be executed in {directory} (it may be mounted noexec); "
                f"set `directory` of the backend {self._spec.backend}"
            )
        if "missing" in said:
            raise SshFailed(f"{host} has no program {said['missing']!r}: install it there")
        prefix = self._scope(said)
        python, is_alike = said.get("python"), said["machine"] == _machine()
        if python is not None:
            name = f"sources-{(await asyncio.to_thread(make_sources, is_alike)).digest}"
        elif is_alike:
            name = f"runtime-{(await asyncio.to_thread(make_runtime, self._site.cache)).digest}"
        else:
            raise SshFailed(
                f"{host} is {said['machine']} and this machine {_machine()}: install Python 3.11 or newer there"
            )
        return HostFacts(f"{said['state']}/{self.key}", f"{said['runtimes']}/{name}", python, prefix)

    def _scope(self, said: Mapping[str, str]) -> list[str]:
        """Where logind ends what a user leaves behind, the keeper runs in a scope of the user's service manager."""
        if said.get("kill") != "yes":
            return []
        if said.get("linger") != "yes":
            raise SshFailed(
                f"{self.client.host} ends all processes of a user at logout (KillUserProcesses=yes); "
                f"run there: loginctl enable-linger {said.get('user', '')}"
            )
        return ["systemd-run", "--user", "--scope", "--quiet", "--collect"]

    async def _copy(self, shell: HostShell, facts: HostFacts, *, is_alike: bool, is_packed: bool) -> None:
        def pack() -> bytes:
            if facts.python is None:
                return archive(make_runtime(self._site.cache).directory, is_packed)
            return make_sources(is_alike).archive(is_packed)

        packed = await asyncio.to_thread(pack)
        try:
            await shell.unpack(packed, is_packed, facts.at, _COPY_BUDGET)
        except TimeoutError:
            raise SshFailed(f"{self.client.host} has not taken {len(packed)} bytes within {_COPY_BUDGET:g} s") from None
        self._copied = facts.at
        self._note("runtime-copied", host=self.client.host, bytes=len(packed))

    def _load_facts(self) -> HostFacts | None:
        """None where this release has not been there."""
        try:
            with open(f"{self.directory}/{_FACTS}", "rb") as file:
                facts = HostFacts(**json.load(file))
        except (OSError, ValueError, TypeError):
            return None
        if facts.python is None:
            known = {f"runtime-{make_runtime(self._site.cache).digest}"}
        else:
            known = {f"sources-{make_sources(is_alike).digest}" for is_alike in (True, False)}
        return facts if os.path.basename(facts.at) in known else None

    def _save_facts(self, facts: HostFacts) -> None:
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        files.replace(f"{self.directory}/{_FACTS}", json.dumps(facts._asdict()).encode())


def _machine() -> str:
    return os.uname().machine


def _shell_words(argv: Sequence[str]) -> list[str]:
    """A command for the shell of the host, without variables that are meant for its libc."""
    clean = ("env", "-u", "LD_PRELOAD", "-u", "LD_LIBRARY_PATH", "-u", "LD_AUDIT")
    return ["exec", *(_quote(word) for word in (*clean, *argv))]


def _file_name(text: str) -> str:
    """A name for a directory."""
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", text):
        return text
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class SshBackend(Backend):
    kind = "ssh"
    is_per_task = False

    def check_options(self, given: Options) -> dict[str, Any]:
        found = check_options(self.name, self.table, given, _RULES)
        options = {name: value for name, value in found.items() if value is not None}
        if "host" not in options:
            raise BadValue(
                f"the backend {self.name} needs a host", next=f"--host me@host, or host in [backends.{self.name}]"
            )
        return options

    def open(self, spec: PlaceSpec, site: Site) -> SshPlace:
        return SshPlace(spec, site)

    async def state(self, environ: Mapping[str, str]) -> BackendState:
        self.check_options({} if "host" in self.table else {"host": "any"})
        try:
            child = await asyncio.create_subprocess_exec(
                "ssh",
                "-V",
                env=dict(environ),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
            try:
                async with asyncio.timeout(_VERSION_BUDGET):
                    _, said = await child.communicate()
            finally:
                await end_program(child)
        except TimeoutError:
            return BackendState("unusable", "ssh -V does not end")
        except OSError:
            return BackendState("unusable", "ssh is not installed (apt-get install openssh-client)", False)
        return BackendState("ready", said.decode(errors="replace").partition(",")[0].strip())

    async def login(self, environ: Mapping[str, str], given: Options) -> list[str]:
        return SshClient(self.name, self.check_options(given), environ).login_argv()
