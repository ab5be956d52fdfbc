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
import stat
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from holdfast import files
from holdfast.errors import BadValue
from holdfast.places.backend import Backend, BackendState, Options, PlaceSpec, Site
from holdfast.places.base import end_program, start_program
from holdfast.places.carry import Runtime, archive, make_runtime, make_sources
from holdfast.places.mirrored import MirroredPlace
from holdfast.places.options import Rule, a_file, a_text, a_whole_number, check_options
from holdfast.places.relay_link import RelayPeer, RelayProcess, start_relay

#: Until a command on the host has ended, and until everything was copied there.
_COMMAND_BUDGET = 40.0
_COPY_BUDGET = 600.0
#: The same for a host that has been used before, so that a connection that hangs is replaced soon.
_KNOWN_BUDGET = 20.0
#: Of a client that says its version.
_VERSION_BUDGET = 5.0
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
_MARK = b"\0holdfast-host\0"
_ERROR_SIZE = 4000

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
        """The command that a person runs to authenticate: a control master that stays in the background."""
        return self.argv("-o", "ControlMaster=yes", "-o", "ControlPersist=yes", "-f", "-N", is_batch=False)

    async def run(self, command: Sequence[str], data: bytes = b"", budget: float = _COMMAND_BUDGET) -> bytes:
        """What a command of the host prints. Raises SshFailed."""
        code, output, errors = await self._run(self.argv(command=command), data, budget)
        if code == 255:
            raise await self._failure(errors)
        if code != 0:
            said = _last_line(errors) or _last_line(output.decode(errors="replace"))  # nologin writes to stdout
            raise SshFailed(f"{self.host}: {said or f'the command there ended with {code}'}")
        return output

    async def _run(self, argv: Sequence[str], data: bytes, budget: float) -> tuple[int, bytes, str]:
        # Not pipes: other processes, such as the control master, may keep those open, and then the end of the client
        # is not noticed; and a client that fails does not read.
        source, output, errors = _memory_file(data), _memory_file(), _memory_file()
        try:
            child = await asyncio.create_subprocess_exec(
                *argv, stdin=source, stdout=output, stderr=errors, env=self.environ, start_new_session=True
            )
            try:
                async with asyncio.timeout(budget):
                    await child.wait()
            except TimeoutError:
                raise SshFailed(f"{self.host} has not answered within {budget:g} s") from None
            finally:
                await end_program(child)
            said = os.pread(errors, _ERROR_SIZE, 0).decode(errors="replace")
            return child.returncode or 0, os.pread(output, os.fstat(output).st_size, 0), said
        except FileNotFoundError:
            raise SshFailed("ssh is not installed: apt-get install openssh-client") from None
        finally:
            for fd in (source, output, errors):
                os.close(fd)

    async def drop_hung_master(self) -> None:
        """A control master that does not answer is replaced: the next client makes another one."""
        path = self.control_path
        if path is None or not os.path.exists(path):
            return
        with contextlib.suppress(SshFailed):
            await self._run(self.argv("-O", "check"), b"", _MASTER_BUDGET)
            return
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    async def _failure(self, errors: str) -> SshFailed:
        """What ssh said, and the next step."""
        last, host = _last_line(errors) or "ssh failed without a reason", self.host
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
        code, output, _ = await self._run(self.argv("-G"), b"", _VERSION_BUDGET)
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


def _memory_file(data: bytes = b"") -> int:
    """A file without a name, at its beginning."""
    fd = os.memfd_create("ssh", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "".join(one if one.isprintable() else " " for one in lines[-1])[:300] if lines else ""


def _quote(word: str) -> str:
    """A word for every login shell. Raises SshFailed for one that cannot be quoted for all of them."""
    if not _QUOTABLE.fullmatch(word):
        raise SshFailed(f"the path {word[:200]!r} there has characters that cannot be used: set `directory`")
    return f"'{word}'"


# The host.

#: What is asked first, by sh. The arguments are the directory, the digest of the runtime, and whether the user chose
#: the directory: then no other one is used. Nothing is written to directories of other users.
_ASK = r"""
printf '\0holdfast-host\0'
case "$1" in '~/'*) state="$HOME/${1#??}" ;; *) state="$1" ;; esac
say() { printf '%s=%s\n' "$1" "$2"; }
say machine "$(uname -m)"
say system "$(uname -s)"
say home "$HOME"
say user "$(id -un 2> /dev/null || id -u)"
umask 077
if mkdir -p "$state" 2> /dev/null && [ -w "$state" ]; then say state "$state"; fi
can_execute() {
    mkdir -p "$1" 2> /dev/null && [ -O "$1" ] && printf '#!/bin/sh\nexit 0\n' > "$1/.try$$" 2> /dev/null || return 1
    chmod 700 "$1/.try$$"; "$1/.try$$" 2> /dev/null; found=$?
    rm -f "$1/.try$$"; return $found
}
own="holdfast-$(id -u)" digest=$2
if [ -n "$3" ]; then set -- "$state"
else set -- "$state" "${XDG_RUNTIME_DIR:+$XDG_RUNTIME_DIR/$own}" "/var/tmp/$own" "/tmp/$own"; fi
for at in "$@"; do
    if [ -n "$at" ] && can_execute "$at"; then
        say runtimes "$at"
        if [ -d "$at/runtime-$digest" ]; then say runtime yes; fi
        if [ -d "$at/sources-$digest" ]; then say sources yes; fi
        break
    fi
done
if command -v gzip > /dev/null 2>&1; then say gzip yes; fi
if command -v loginctl > /dev/null 2>&1; then
    say kill "$(loginctl show-user -p KillUserProcesses --value 2> /dev/null)"
    say linger "$(loginctl show-user "$(id -un)" -p Linger --value 2> /dev/null)"
fi
for python in python3 python3.14 python3.13 python3.12 python3.11; do
    if "$python" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 11))' > /dev/null 2>&1; then
        say python "$(command -v "$python")"
        break
    fi
done
"""
_UNPACK = (
    'umask 022; new="$1/.new-$2-$$"; rm -rf "$new"; mkdir -p "$new" && cd "$new" && UNPACK tar xf - && cd .. && '
    '{ [ -d "$2" ] || mv "$new" "$2"; } && rm -rf "$new"'
)


class HostFacts(NamedTuple):
    """Where things are on the host."""

    digest: str
    """Of the runtime of this release."""
    state: str
    """The directory of the place."""
    at: str
    """The directory of the runtime, or of the sources."""
    python: str | None
    """The host's own Python, where it has another architecture."""
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
        #: Whether the relay has answered since it was last started: else the host is asked first.
        self._is_proven = True

    async def open_relay(self) -> RelayProcess:
        await self.client.drop_hung_master()
        runtime = await asyncio.to_thread(make_runtime, self._site.cache)
        facts = await asyncio.to_thread(self._load_facts)
        if facts is None or not self._is_proven or facts.digest != runtime.digest:
            facts = await self._prepare(runtime, _COMMAND_BUDGET if facts is None else _KNOWN_BUDGET)
        self._is_proven = False
        return await start_relay(self.client.argv(command=_relay_command(runtime, facts)), self.client.environ)

    async def open_program(self, program: str, *arguments: str) -> asyncio.subprocess.Process:
        """Beside the relay, on the same connection to the host."""
        runtime = await asyncio.to_thread(make_runtime, self._site.cache)
        facts = await asyncio.to_thread(self._load_facts)
        if facts is None or facts.digest != runtime.digest:
            facts = await self._prepare(runtime, _COMMAND_BUDGET)
        command = _shell_words(_program(runtime, facts, program, *arguments))
        return await start_program(self.client.argv(command=command), self.client.environ)

    async def _begin(self, peer: RelayPeer) -> None:
        await super()._begin(peer)
        self._is_proven = True

    async def _prepare(self, runtime: Runtime, budget: float) -> HostFacts:
        """Ask what the host is like, and copy there what is missing. Raises SshFailed."""
        options = self._spec.options
        directory = options.get("directory") or f"~/.local/state/holdfast/places/{_file_name(self._site.instance)}"
        chosen = "yes" if options.get("directory") else ""
        said = await self._ask(directory, runtime.digest, chosen, budget)
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
        prefix = self._scope(said)
        kind = "runtime" if said["machine"] == _machine() else "sources"
        python = None if kind == "runtime" else said.get("python")
        if kind == "sources" and python is None:
            raise SshFailed(
                f"{host} is {said['machine']} and this machine {_machine()}: install Python 3.11 or newer there"
            )
        at = f"{said['runtimes']}/{kind}-{runtime.digest}"
        if kind not in said:
            source = runtime.directory if python is None else await asyncio.to_thread(make_sources, self._site.cache)
            await self._copy(said, at, source)
        facts = HostFacts(runtime.digest, f"{said['state']}/{self.key}", at, python, prefix)
        await asyncio.to_thread(self._save_facts, facts)
        if kind not in said:  # those of earlier releases are not needed any more
            with contextlib.suppress(SshFailed):
                await self.client.run(_shell_words(_program(runtime, facts, "tidy", *os.path.split(at))))
        return facts

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

    async def _ask(self, directory: str, digest: str, chosen: str, budget: float) -> dict[str, str]:
        """The answers of the host, by name."""
        words = ["exec", "sh", "-s", "--", _quote(directory), digest, _quote(chosen)]
        output = await self.client.run(words, _ASK.encode(), budget)
        _, mark, text = output.rpartition(_MARK)
        pairs = (line.partition("=") for line in text.decode(errors="surrogateescape").splitlines())
        said = {name: value for name, equals, value in pairs if equals}
        if not mark or "machine" not in said:
            raise SshFailed(f"{self.client.host} runs no commands: its login shell has not started sh")
        return said

    async def _copy(self, said: Mapping[str, str], at: str, source: str) -> None:
        is_packed = "gzip" in said
        packed = await asyncio.to_thread(archive, source, is_packed)
        parent, name = os.path.split(at)
        script = _UNPACK.replace("UNPACK ", "gzip -dc | " if is_packed else "")
        words = ["exec", "sh", "-c", _quote(script), "sh", _quote(parent), _quote(name)]
        await self.client.run(words, packed, _COPY_BUDGET)
        self._note("runtime-copied", host=self.client.host, bytes=len(packed))

    def _load_facts(self) -> HostFacts | None:
        try:
            with open(f"{self.directory}/{_FACTS}", "rb") as file:
                return HostFacts(**json.load(file))
        except (OSError, ValueError, TypeError):
            return None

    def _save_facts(self, facts: HostFacts) -> None:
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        files.replace(f"{self.directory}/{_FACTS}", json.dumps(facts._asdict()).encode())


def _machine() -> str:
    return os.uname().machine


def _program(runtime: Runtime, facts: HostFacts, name: str, *arguments: str) -> list[str]:
    if facts.python is None:
        return runtime.argv(facts.at, name, *arguments)
    boot = "import sys; sys.path.insert(0, sys.argv.pop(1)); from holdfast.places.carried import main; "
    boot += "main(sys.argv[1], sys.argv[2:])"
    return [facts.python, "-I", "-S", "-c", boot, facts.at, name, *arguments]


def _shell_words(argv: Sequence[str]) -> list[str]:
    """A command for the shell of the host, without variables that are meant for its libc."""
    clean = ("env", "-u", "LD_PRELOAD", "-u", "LD_LIBRARY_PATH", "-u", "LD_AUDIT")
    return ["exec", *(_quote(word) for word in (*clean, *argv))]


def _relay_command(runtime: Runtime, facts: HostFacts) -> list[str]:
    keeper = _program(runtime, facts, "keeper")
    return _shell_words(_program(runtime, facts, "relay", facts.state, *facts.prefix, *keeper))


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
