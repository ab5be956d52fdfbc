"""The bridge: a program of this machine that speaks to a provider by its SDK, and carries the stream of a relay.

It reads a request, one line of JSON, and prints answers, one line each:

    relay     {"gone": why} when the sandbox in use has ended, else {"sandbox": name}, {"ready": true}, and from then on
              the stream of the relay on stdin and stdout
    program   as relay, but for another program of holdfast in the sandbox; `program` has its name and arguments
    list      {"sandboxes": [{"place", "name", "is_up"}]}, of an instance
    remove    {"removed": count}: one sandbox, or those of a place
    all       {"error": one line}

It ends when its stdin is closed, and when the connection to the sandbox is cut: then the daemon starts another one.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shlex
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NoReturn

from holdfast.places.carry import Runtime, archive
from holdfast.places.relay.text_stream import SILENCE_LIMIT, TextDecoder, TextEncoder, write_all

#: The labels of a sandbox.
INSTANCE_LABEL = "holdfast.instance"
PLACE_LABEL = "holdfast.place"

_READ_SIZE = 1 << 18
#: Between two signs of life, by which the bridge also notices that the sandbox is gone.
_LIFE_PAUSE = 3.0
#: A sandbox is prolonged this often within its timeout.
_PROLONGATIONS = 4
#: Between an error on the way there and its report, for the reason that may come from there.
_REASON_PAUSE = 1.0
_LOCK_BUDGET = 120.0
_LOCK_PAUSE = 0.05
_KEY_BUDGET = 30.0
_LONGEST_ERROR = 400
LONGEST_COMPLAINT = 2000

#: Prints what the sandbox is like. The argument is the digest of the runtime.
_ASK = r"""
printf 'machine=%s\n' "$(uname -m)"
cd && printf 'home=%s\n' "$(pwd)"
if [ -d ".holdfast/runtime-$1" ]; then printf 'runtime=yes\n'; fi
"""
#: The arguments are the directory of the runtime, and the archive.
_UNPACK = r"""
umask 022; new="$1.new$$"; rm -rf "$new"; mkdir -p "$new" && tar -xzf "$2" -C "$new" && rm -f "$2" &&
{ [ -d "$1" ] || mv "$new" "$1"; } && rm -rf "$new"
"""
#: The argument is the directory, behind it the command. Nothing is left of variables for another libc.
_RUN = r'cd "$1" || exit 1; shift; unset LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT; exec "$@"'


class BridgeFailed(Exception):
    """One line, which names the next step."""


class SandboxEnded(Exception):
    """The provider knows that the sandbox has ended. A connection that was cut is no such thing."""


class CloudSession(ABC):
    """A sandbox that is up. Everything blocks, and may be called in several threads. Raises the errors of the SDK."""

    name: str
    """As the provider knows it."""
    complaint: str = ""
    """What the command of `start` has written to stderr last, at most LONGEST_COMPLAINT characters."""
    is_terminal: ClassVar[bool] = False
    """Whether the streams of `start` are a terminal: then the program there waits until its lines are confirmed."""

    def run(self, command: str) -> str:
        """What a command text prints on stdout. Raises BridgeFailed when it ends with an error."""
        code, output, errors = self.execute(command)
        if code != 0:
            raise BridgeFailed(f"a command in the sandbox {self.name} failed: {_one_line(errors)}")
        return output

    @abstractmethod
    def execute(self, command: str) -> tuple[int, str, str]:
        """The exit code of a command text, its stdout and its stderr."""

    @abstractmethod
    def upload(self, path: str, data: bytes) -> None:
        """Write a file, whose directory is made."""

    @abstractmethod
    def start(self, command: str) -> None:
        """Start the command text whose streams `send` and `receive` are."""

    @abstractmethod
    def send(self, text: bytes) -> None:
        """Write to its stdin."""

    @abstractmethod
    def receive(self) -> Iterator[bytes]:
        """What it writes to stdout, until it ends."""

    @abstractmethod
    def prolong(self) -> None:
        """The sandbox may live for its timeout from now on. Raises SandboxEnded."""


class CloudClient(ABC):
    """A provider. `options` are those of the backend, `key` is the API key."""

    key_variable: ClassVar[str]
    is_key_needed: ClassVar[bool] = True
    """False where the SDK has a configuration of its own, which may have the key."""

    def __init__(self, options: dict[str, Any], key: str) -> None:
        self.options = options
        self.key = key

    @abstractmethod
    def connect(self, name: str) -> CloudSession:
        """A sandbox that was made before; one that sleeps is woken. Raises SandboxEnded."""

    @abstractmethod
    def make(self, labels: dict[str, str]) -> CloudSession:
        """A new one, which the provider ends after the timeout of the options."""

    @abstractmethod
    def find(self, labels: dict[str, str]) -> list[tuple[str, dict[str, str], bool]]:
        """Name, labels and whether it is up, of each sandbox that has these labels and has not ended."""

    @abstractmethod
    def end(self, name: str) -> None:
        """End a sandbox; one that does not exist has ended."""


def main(client: type[CloudClient]) -> None:
    """Run the program that the command line names."""
    target = os.dup(1)
    os.dup2(2, 1)  # the SDK may print
    backend = ""

    def say(answer: dict[str, Any]) -> None:
        write_all(target, json.dumps(answer).encode() + b"\n")

    try:
        request = json.loads(_read_request())
        backend = request["backend"]
        opened = client(request["options"], _key(client, request))
        if sys.argv[1] in ("relay", "program"):
            _carry_program(opened, request, say, target)
        elif sys.argv[1] == "list":
            found = opened.find({INSTANCE_LABEL: request["instance"]})
            say({"sandboxes": [{"place": b.get(PLACE_LABEL, ""), "name": a, "is_up": c} for a, b, c in found]})
        else:
            names = [request["sandbox"]] if "sandbox" in request else [one[0] for one in opened.find(_labels(request))]
            for name in names:
                opened.end(name)
            say({"removed": len(names)})
    except SandboxEnded as ended:
        say({"gone": _one_line(str(ended))})
    except ModuleNotFoundError as missing:
        say({"error": f"the package {missing.name} is not installed: see holdfast backends"})
    except Exception as failed:  # noqa: BLE001 - the top of the program; SDKs raise all kinds of errors
        text = _one_line(str(failed)) or type(failed).__name__
        text = text if isinstance(failed, BridgeFailed) else f"{backend}: {text}"
        say({"error": text})
        leave(text)
    os._exit(0)


def _read_request() -> bytes:
    """What comes behind it is for the program in the sandbox."""
    data = b""
    while not data.endswith(b"\n"):
        more = os.read(0, 1)
        if not more:
            os._exit(0)
        data += more
    return data


def _labels(request: dict[str, Any]) -> dict[str, str]:
    return {INSTANCE_LABEL: request["instance"], PLACE_LABEL: request["place"]}


def _key(client: type[CloudClient], request: dict[str, Any]) -> str:
    """The API key. It is in no argument, and in no message."""
    options, table = request["options"], f"[backends.{request['backend']}]"
    if path := options.get("api_key_file"):
        try:
            with open(path, encoding="utf-8") as file:
                if os.fstat(file.fileno()).st_mode & 0o077:
                    raise BridgeFailed(f"other users may read the API key: chmod 600 {path}")
                key = file.read().strip()
        except (OSError, ValueError) as failed:
            why = failed.strerror if isinstance(failed, OSError) else "it is not text"
            raise BridgeFailed(f"api_key_file in {table}: {path} cannot be read: {why}") from None
        source = path
    elif command := options.get("api_key_command"):
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, timeout=_KEY_BUDGET
            )
        except subprocess.TimeoutExpired:
            raise BridgeFailed(f"api_key_command in {table} has not ended within {_KEY_BUDGET:g} s") from None
        if done.returncode != 0:
            raise BridgeFailed(f"api_key_command in {table} ended with {done.returncode}")
        key, source = done.stdout.decode(errors="replace").strip(), "api_key_command"
    else:
        if not client.is_key_needed:
            return ""
        key, source = os.environ.get(client.key_variable, "").strip(), f"api_key_file in {table}"
    if not key or not key.isprintable() or " " in key:
        raise BridgeFailed(f"there is no API key: see {source}")
    return key


# Programs in the sandbox.


def _carry_program(
    client: CloudClient, request: dict[str, Any], say: Callable[[dict[str, Any]], None], target: int
) -> None:
    with _alone(request["lock"]):
        session = _session(client, request)
    say({"sandbox": session.name})
    runtime = Runtime(**request["runtime"])
    home = _copy_runtime(session, runtime)
    at = f"{home}/.holdfast/runtime-{runtime.digest}"
    program = request.get("program") or ["relay", f"{home}/.holdfast/place", *runtime.argv(at, "keeper")]
    session.start(_script(_RUN, client.options.get("cwd") or home, *runtime.argv(at, "text", *program)))
    say({"ready": True})
    _Stream(session, target).carry(float(client.options["timeout"]))


def _session(client: CloudClient, request: dict[str, Any]) -> CloudSession:
    if request["sandbox"] is not None:
        return client.connect(request["sandbox"])
    for name, _, _ in client.find(_labels(request)):
        with contextlib.suppress(SandboxEnded):
            return client.connect(name)
    return client.make(_labels(request))


@contextlib.contextmanager
def _alone(path: str) -> Iterator[None]:
    """One bridge at a time looks for the sandbox of a place and makes it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    end = time.monotonic() + _LOCK_BUDGET
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise BridgeFailed(f"another bridge has been making the sandbox for {_LOCK_BUDGET:g} s") from None
                time.sleep(_LOCK_PAUSE)
        yield
    finally:
        os.close(fd)


def _copy_runtime(session: CloudSession, runtime: Runtime) -> str:
    """The home directory there, with the runtime in it."""
    lines = session.run(_script(_ASK, runtime.digest)).splitlines()
    said = dict(line.partition("=")[::2] for line in lines)
    home = said.get("home")
    if not home or "machine" not in said:
        raise BridgeFailed(f"the sandbox {session.name} runs no commands")
    if said["machine"] != os.uname().machine:
        raise BridgeFailed(
            f"the sandbox is {said['machine']} and this machine {os.uname().machine}: both must be alike"
        )
    if "runtime" not in said:
        packed = f"{home}/.holdfast/runtime-{os.urandom(4).hex()}.tar.gz"
        session.upload(packed, archive(runtime.directory, is_packed=True))
        session.run(_script(_UNPACK, f"{home}/.holdfast/runtime-{runtime.digest}", packed))
    return home


def _script(text: str, *arguments: str) -> str:
    return shlex.join(["sh", "-c", text, "sh", *arguments])


class _Stream:
    """Carries bytes between the daemon and the program in the sandbox, until that ends."""

    def __init__(self, session: CloudSession, target: int) -> None:
        self._session = session
        self._target = target
        self._has_closed = threading.Event()
        self._heard_at = 0.0

    def carry(self, timeout: float) -> NoReturn:
        for work in (self._receive, self._send):
            threading.Thread(target=_guarded, args=(work,), daemon=True).start()
        while not self._has_closed.wait(timeout / _PROLONGATIONS):
            try:
                self._session.prolong()
            except SandboxEnded as ended:
                leave(str(ended))
            except Exception as failed:  # noqa: BLE001 - the next one may be answered
                sys.stderr.write(f"the sandbox was not prolonged: {_one_line(str(failed))}\n")
        self._heard_at = time.monotonic()
        while (left := self._heard_at + SILENCE_LIMIT - time.monotonic()) > 0:
            time.sleep(left)
        leave("the program in the sandbox does not end")

    def _receive(self) -> None:
        decoder, has_begun = TextDecoder(), False
        for text in self._session.receive():
            self._heard_at = time.monotonic()
            data = decoder.feed(text)
            write_all(self._target, data)
            has_begun = has_begun or bool(data)
            if self._session.is_terminal:
                self._session.send(decoder.confirm())
            if decoder.has_ended:
                os._exit(0)
        if self._has_closed.is_set():
            os._exit(0)
        lines = [] if has_begun else self._session.complaint.strip().splitlines()
        leave(lines[-1] if lines else "the connection to the sandbox was cut")

    def _send(self) -> None:
        try:
            self._send_all()
        except Exception:  # SDKs raise all kinds of errors
            time.sleep(_REASON_PAUSE)  # where the program has ended, the other thread knows why
            raise

    def _send_all(self) -> None:
        encoder = TextEncoder()
        self._session.send(encoder.encode(b""))
        while True:
            is_ready = select.select([0], [], [], _LIFE_PAUSE)[0]
            data = os.read(0, _READ_SIZE) if is_ready else b""
            if is_ready and not data:
                self._has_closed.set()
                self._session.send(encoder.end())
                return
            self._session.send(encoder.encode(data))


def _guarded(work: Callable[[], None]) -> None:
    try:
        work()
    except Exception as failed:  # noqa: BLE001 - the top of the thread
        leave(str(failed) or type(failed).__name__)


def leave(why: str) -> NoReturn:
    """End the bridge. The last line on stderr is what the daemon shows."""
    sys.stderr.write(_one_line(why) + "\n")
    sys.stderr.flush()
    os._exit(1)


def _one_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "".join(one if one.isprintable() else " " for one in (lines[0] if lines else ""))[:_LONGEST_ERROR]
