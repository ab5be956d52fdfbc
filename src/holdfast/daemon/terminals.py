"""What is known of the input of a running process: its terminal as it is set now, or its pipe.

By the descriptors that the depot holds for the keeper: nothing is read from them, and nothing written.
"""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from typing import NamedTuple

from holdfast.daemon.room import Room
from holdfast.machine.readers import IsInput, is_pipe, is_terminal
from holdfast.model.process import Process
from holdfast.model.prompts import Terminal

_LOCAL_FLAGS = 3
#: Which terminal a master belongs to; `termios` does not name it.
_GET_NUMBER = 0x80045430


class Input(NamedTuple):
    terminal: Terminal | None
    """None for a pipe."""
    group: int | None
    """The process group in the foreground of the terminal."""
    is_input: IsInput


def input_of(room: Room, process: Process) -> Input | None:
    """None where it has none, or nobody can tell now."""
    held = room.depot.held.get(process.id, {})
    try:
        if process.meta.pty:
            return _of_terminal(held["pty"])
        return Input(None, None, is_pipe(held["stdin"]))
    except (KeyError, OSError, termios.error):
        return None


def terminal_of(room: Room, process: Process) -> Terminal | None:
    """How its terminal is set now; None where it has none, or nobody can tell."""
    found = input_of(room, process)
    return found.terminal if found is not None else None


def _of_terminal(master: int) -> Input:
    flags = termios.tcgetattr(master)[_LOCAL_FLAGS]
    terminal = Terminal(bool(flags & termios.ECHO), bool(flags & termios.ICANON))
    (number,) = struct.unpack("I", fcntl.ioctl(master, _GET_NUMBER, bytes(4)))
    return Input(terminal, os.tcgetpgrp(master), is_terminal(number))
