"""A sudo in a command of the agent asks for the password inline: typed without echo, 45 s, Enter is no."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from tests.agent.endpoint import Endpoint, Say, call, last_result
from tests.cli.calling import Terminal
from tests.takeover.conftest import someone
from tests.takeover.someone import Instance, Someone
from tests.takeover.test_sudo import check_no_trace

__all__ = ["someone"]

#: Without the memory that sudo has of its own.
WHO = "sudo -k; sudo id -un"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def instance(someone: Someone, endpoint: Endpoint) -> Instance:
    instance = someone.instance()
    (instance.home / "agent").mkdir(mode=0o700)
    config = instance.home / "agent/config.toml"
    config.write_text(f'base_url = "{endpoint.url}"\nmodel = "m"\n')
    for path in (instance.home / "agent", config):
        os.chown(path, someone.uid, someone.uid)
    return instance


def _agent(instance: Instance, *words: str) -> Terminal:
    whole = instance.someone.command([sys.executable, "-m", "holdfast", "agent", "--session", "A", *words])
    return Terminal(whole=whole, env={**instance.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"})


@pytest.mark.parametrize("words", [(), ("who is root?",)], ids=["conversation", "one-turn"])
def test_a_password_is_asked_for_inline_and_leaves_no_trace(
    instance: Instance, endpoint: Endpoint, words: tuple[str, ...]
) -> None:
    endpoint.script(call("terminal", command=WHO), lambda body: Say(f"it is {last_result(body)['output'].strip()}"))
    with _agent(instance, *words) as terminal:
        if not words:
            terminal.see("session A")
            terminal.type(b"who is root?\r")
        terminal.see("password (Enter: no)")
        terminal.type(f"{instance.someone.password}\r".encode())
        shown = terminal.see("it is root")
    assert instance.someone.password.encode() not in shown
    check_no_trace(instance)
    assert not any(instance.someone.password in str(body) for body in endpoint.asked)


def test_enter_is_no(instance: Instance, endpoint: Endpoint) -> None:
    endpoint.script(call("terminal", command=WHO), Say("not allowed, then"))
    with _agent(instance, "who is root?") as terminal:
        terminal.see("password (Enter: no)")
        terminal.type(b"\r")
        terminal.see("not allowed, then")
    result = last_result(endpoint.asked[-1])
    assert result["exit_code"] != 0 and "the user refused to type the password" in result["output"]


def test_without_a_terminal_no_password_is_asked_for(instance: Instance, endpoint: Endpoint) -> None:
    endpoint.script(call("terminal", command=WHO), Say("without it"))
    done = instance.holdfast("agent", "--session", "A", "--quiet", "who is root?")
    assert (done.returncode, done.stdout) == (0, b"without it\n")
    assert "no approver is connected" in last_result(endpoint.asked[-1])["output"]
