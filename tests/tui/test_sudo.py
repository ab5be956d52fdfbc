"""A sudo in a command of an agent is answered in the terminal UI: the password is not shown, and leaves no trace."""

from __future__ import annotations

import sys

from tests.agent.endpoint import Endpoint, Say, call, last_result
from tests.agent.test_sudo import WHO, endpoint, instance
from tests.cli.calling import Terminal
from tests.takeover.conftest import someone
from tests.takeover.someone import Instance
from tests.takeover.test_sudo import check_no_trace

__all__ = ["endpoint", "instance", "someone"]


def test_a_password_is_typed_into_a_dialog_and_leaves_no_trace(instance: Instance, endpoint: Endpoint) -> None:
    endpoint.script(call("terminal", command=WHO), lambda body: Say(f"it is {last_result(body)['output'].strip()}"))
    whole = instance.someone.command([sys.executable, "-m", "holdfast", "tui"])
    with Terminal(whole=whole, env={**instance.environ, "TERM": "xterm"}) as terminal:
        terminal.see("enter open")
        terminal.type(b"\x0e")
        terminal.see("A name for the new session")
        terminal.type(b"\r")
        terminal.see("write to the agent")
        terminal.type(b"who is root?\r")
        terminal.see("alt-a answer")
        terminal.type(b"\x1ba")
        terminal.see("enter sends the password")
        terminal.type(f"{instance.someone.password}\r".encode())
        shown = terminal.see("it is root")
        terminal.type(b"\x11")
        assert terminal.end() == 0
    assert instance.someone.password.encode() not in shown
    check_no_trace(instance)
    assert not any(instance.someone.password in str(body) for body in endpoint.asked)
