"""`sh` on a host, over stdin and stdout of a client such as `ssh`: it is asked step by step, and becomes a relay then.

One connection does it all: a login takes a while, on some hosts seconds. Each step is sent when the one before is
answered, because a shell may read ahead.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex

from holdfast.places.base import end_program
from holdfast.places.relay.link import RelayProcess

#: A step is answered by what it prints between these two; the second has its exit code.
_BEGIN = b"\0holdfast-host\0"
_END = re.compile(rb"\0holdfast-end (\d+)\0")
_SAY_BEGIN = "printf '\\0holdfast-host\\0'\n"
_SAY_END = "printf '\\0holdfast-end %d\\0' $?\n"

#: Says what the host is like, as lines of `name=value`. The arguments of the shell are the directory, and whether the
#: user chose it: then no other one is used. Nothing is written to directories of other users. A Python that can run
#: the keeper has the modules that distributions may leave out.
_ASK = r"""
case "$1" in '~/'*) state="$HOME/${1#??}" ;; *) state="$1" ;; esac
say() { printf '%s=%s\n' "$1" "$2"; }
say machine "$(uname -m)"
say system "$(uname -s)"
say home "$HOME"
say user "$(id -un 2> /dev/null || id -u)"
mask=$(umask)
umask 077
if mkdir -p "$state" 2> /dev/null && [ -w "$state" ]; then say state "$state"; fi
can_execute() {
    mkdir -p "$1" 2> /dev/null && [ -O "$1" ] && printf '#!/bin/sh\nexit 0\n' > "$1/.try$$" 2> /dev/null || return 1
    chmod 700 "$1/.try$$"; "$1/.try$$" 2> /dev/null; found=$?
    rm -f "$1/.try$$"; return $found
}
own="holdfast-$(id -u)"
if [ -n "$2" ]; then set -- "$state"
else set -- "$state" "${XDG_RUNTIME_DIR:+$XDG_RUNTIME_DIR/$own}" "/var/tmp/$own" "/tmp/$own"; fi
for at in "$@"; do
    if [ -n "$at" ] && can_execute "$at"; then
        say runtimes "$at"
        has=
        for one in "$at"/runtime-* "$at"/sources-*; do
            if [ -d "$one" ]; then has="$has ${one##*/}"; fi
        done
        say has "$has"
        break
    fi
done
if command -v gzip > /dev/null 2>&1; then say gzip yes; fi
for program in head tar; do
    command -v "$program" > /dev/null 2>&1 || say missing "$program"
done
if command -v loginctl > /dev/null 2>&1; then
    say kill "$(loginctl show-user -p KillUserProcesses --value 2> /dev/null)"
    say linger "$(loginctl show-user "$(id -un)" -p Linger --value 2> /dev/null)"
fi
case ":$PATH:" in *:/usr/bin:*) system=/usr/bin/python3 ;; *) system= ;; esac
for python in $system python3 python3.14 python3.13 python3.12 python3.11; do
    found=$("$python" -I -S -c '
import sys
from importlib.util import find_spec
needed = "asyncio", "json", "_ctypes", "_socket", "_ssl", "fcntl", "termios", "resource", "zlib"
if sys.version_info >= (3, 11) and all(map(find_spec, needed)):
    print(sys.executable)
' 2> /dev/null) && [ -n "$found" ] && say python "$found" && break
done
umask "$mask"
"""
#: Reads an archive of so many bytes to a directory. It is there with its whole content, or not at all.
_UNPACK = """
new={parent}/.new-{name}-$$
head -c {size} | (
    umask 022
    rm -rf "$new" && mkdir -p "$new" && cd "$new" && {unpack}tar xf - && cd .. &&
        {{ [ -d {name} ] || mv "$new" {name}; }}
    code=$?
    rm -rf "$new"
    exit $code
)
"""
#: After a failure, the rest of the archive must not be read as commands.
_SAY_END_OR_EXIT = """code=$?
printf '\\0holdfast-end %d\\0' $code
[ $code = 0 ] || exit $code
"""
_READ_SIZE = 1 << 16
_WRITE_SIZE = 1 << 16
_MOST_OUTPUT = 1 << 20


class ShellEnded(OSError):
    """The client has ended, with this exit code. `said` is what it wrote before."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(f"the shell there has ended with {code}")
        self.code = code
        self.said = said


class StepFailed(OSError):
    """A step has ended with another exit code than 0."""


class HostShell:
    """`relay` runs `sh -s` there with the arguments that `ask` needs. After an error, it is to be closed."""

    def __init__(self, relay: RelayProcess) -> None:
        self._relay = relay
        self._buffer = b""
        self._ending = asyncio.ensure_future(relay.process.wait())
        os.set_blocking(relay.target, False)

    async def ask(self, budget: float) -> dict[str, str]:
        """What the host is like, by name. Raises ShellEnded, StepFailed, TimeoutError."""
        async with asyncio.timeout(budget):
            await self._send(f"{_SAY_BEGIN}{_ASK}{_SAY_END}".encode())
            await self._until(re.compile(re.escape(_BEGIN)))
            text = await self._finished()
        pairs = (line.partition("=") for line in text.decode(errors="surrogateescape").splitlines())
        return {name: value for name, equals, value in pairs if equals}

    async def unpack(self, packed: bytes, is_packed: bool, at: str, budget: float) -> None:
        """Put an archive to a directory of this path. Raises ShellEnded, StepFailed, TimeoutError."""
        parent, name = map(shlex.quote, os.path.split(at))
        unpack = "gzip -dc | " if is_packed else ""
        script = _UNPACK.format(parent=parent, name=name, size=len(packed), unpack=unpack)
        async with asyncio.timeout(budget):
            # One command: the shell has read it all when it says that it begins, and what follows is not for it.
            await self._send(f"{{\n{_SAY_BEGIN}{script}{_SAY_END_OR_EXIT}}}\n".encode())
            await self._until(re.compile(re.escape(_BEGIN)))
            await self._send(packed)
            await self._finished()

    async def become(self, command: str) -> RelayProcess:
        """Let the shell execute a relay."""
        await self._send(f"{command}\n".encode())
        self._ending.cancel()
        return self._relay

    async def close(self) -> None:
        self._ending.cancel()
        await end_program(self._relay.process)
        for fd in (self._relay.source, self._relay.target, self._relay.errors):
            os.close(fd)

    async def _finished(self) -> bytes:
        """What a step has printed."""
        text, found = await self._until(_END)
        if int(found[1]) != 0:
            raise StepFailed(self._relay.error_text() or f"the command there ended with {int(found[1])}")
        return text

    async def _send(self, data: bytes) -> None:
        """Until it is written, or the client has ended: that is noticed when the answer is read."""
        loop, target, view = asyncio.get_running_loop(), self._relay.target, memoryview(data)
        while view and not self._ending.done():
            try:
                view = view[os.write(target, view[:_WRITE_SIZE]) :]
            except BrokenPipeError:
                return
            except BlockingIOError:
                ready = asyncio.Event()
                loop.add_writer(target, ready.set)
                try:
                    await self._either(ready)
                finally:
                    loop.remove_writer(target)

    async def _until(self, mark: re.Pattern[bytes]) -> tuple[bytes, re.Match[bytes]]:
        """What comes before a mark, and the mark; both are taken."""
        while (found := mark.search(self._buffer)) is None:
            if len(self._buffer) > _MOST_OUTPUT:
                raise StepFailed("the login shell there prints too much")
            self._buffer += await self._read()
        before, self._buffer = self._buffer[: found.start()], self._buffer[found.end() :]
        return before, found

    async def _read(self) -> bytes:
        source, loop = self._relay.source, asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(source, ready.set)
        try:
            await self._either(ready)
        finally:
            loop.remove_reader(source)
        with contextlib.suppress(BlockingIOError):
            if data := os.read(source, _READ_SIZE):
                return data
        code = await asyncio.shield(self._ending)
        errors = os.pread(self._relay.errors, _MOST_OUTPUT, 0).decode(errors="replace")
        raise ShellEnded(code, errors or self._buffer.decode(errors="replace"))  # nologin writes to stdout

    async def _either(self, ready: asyncio.Event) -> None:
        """Until the pipe is ready or the client has ended: others, such as a control master, may keep the pipe open."""
        waiting = asyncio.ensure_future(ready.wait())
        try:
            await asyncio.wait((waiting, self._ending), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
