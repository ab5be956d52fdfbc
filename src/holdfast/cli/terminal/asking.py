"""Ask the user on a terminal about requests for approval, one after the other. Only unambiguous words approve."""

from __future__ import annotations

import math
import os
import select
import sys
import termios
import time

from holdfast.cli import colours, console
from holdfast.errors import NotFound, NotNow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.client.reading import Reading
    from holdfast.client.results.approval import Approval
    from holdfast.client.sync import Client

#: The answers that approve, and their scope.
_SCOPES = {
    **dict.fromkeys(("y", "yes", "approve", "approve once"), "once"),
    "approve session": "session",
    "approve always": "always",
}
_BY = "terminal"
_LONGEST_LINE = 4096
_LONGEST_SHOWN = 4000
_LOCAL_FLAGS = 3


def follow(client: Client, session: str | None) -> int:
    """Ask about each request as it comes, until the input ends."""
    with client.follow_approvals(session=session) as reading:
        dialog = _ApprovalDialog(client, reading)
        try:
            return dialog.run()
        finally:
            dialog.echo.on()


class _ApprovalDialog:
    """The request that is shown, and those that wait behind it."""

    def __init__(self, client: Client, reading: Reading[Approval]) -> None:
        self._client = client
        self._reading = reading
        self._waiting: dict[str, Approval] = {}
        #: Answered here. An earlier change of such a request may arrive late, and must not show it again.
        self._answered: set[str] = set()
        self._shown: str | None = None
        self.echo = Echo()

    def run(self) -> int:
        for approval in self._reading.receive():
            self._take(approval)
        console.say("waiting for requests; ^C or ^D ends it")  # from now on callers wait for this terminal
        while True:
            if self._shown is None and self._waiting:
                self._show(min(self._waiting.values(), key=_ends_at))
            if self._stdin_is_ready():
                line = os.read(0, _LONGEST_LINE)
                if not line:
                    return self._leave()
                if self._shown is not None:
                    self._answer(line)
            else:
                for approval in self._reading.receive():
                    self._take(approval)

    def _stdin_is_ready(self) -> bool:
        poll = select.poll()
        poll.register(0, select.POLLIN | select.POLLHUP)
        poll.register(self._reading.fileno(), select.POLLIN)
        return any(fd == 0 for fd, _ in poll.poll())

    def _take(self, approval: Approval) -> None:
        if approval.state == "pending":
            if approval.id in self._answered:
                return
            if self._shown is not None and approval.id not in self._waiting:
                self._announce(approval)
            self._waiting[approval.id] = approval
        elif self._waiting.pop(approval.id, None) is not None and self._shown == approval.id:
            self._shown = None
            self.echo.on()
            console.out("")
            console.say(f"{approval.id} is {approval.state}")

    def _announce(self, approval: Approval) -> None:
        """Mention a request that waits behind the shown one, and report it as shown: its caller then waits, too."""
        what = console.visible(console.brief(approval.command))
        console.out(f"\n  next: {approval.id} of session {console.visible(approval.session)}: {what}")
        sys.stdout.write("> ")
        sys.stdout.flush()
        self._client.approval_shown(approval)

    def _show(self, approval: Approval) -> None:
        termios.tcflush(0, termios.TCIFLUSH)  # what was typed before the request was shown does not answer it
        self._shown = approval.id
        if approval.action == "sudo":
            self._show_sudo(approval)
            return
        left = (approval.fields.get("expires_at") or 0.0) - time.time()
        console.out("")
        console.out(
            colours.paint(f"{approval.id}: session {console.visible(approval.session)} asks to run", colours.BOLD)
        )
        for line in _fitting(approval.command).split("\n"):
            console.out(f"    {colours.paint(console.visible(line), colours.YELLOW)}")
        console.out(f"  {_target(approval)}, in {console.visible(str(approval.fields['cwd']))}")
        console.out(f"  approval is needed because {console.visible(approval.why)}")
        prompt = "  yes | approve session | approve always | anything else denies"
        sys.stdout.write(f"{prompt} ({max(0, round(left))} s)\n> " if 0 < left < 1000 else f"{prompt}\n> ")
        sys.stdout.flush()
        self._client.approval_shown(approval)

    def _show_sudo(self, approval: Approval) -> None:
        console.out("")
        who = f"{approval.id}: sudo asks for a password, in {approval.process} of session "
        console.out(colours.paint(f"{who}{console.visible(approval.session)}, for", colours.BOLD))
        console.out(f"    {colours.paint(console.visible(approval.command), colours.YELLOW)}")
        self.echo.off()
        sys.stdout.write("  type it within 45 s, it is not shown; Enter alone denies\n> ")
        sys.stdout.flush()
        self._client.approval_shown(approval)

    def _answer(self, typed: bytes) -> None:
        approval_id, self._shown = self._shown, None
        assert approval_id is not None
        self._answered.add(approval_id)
        approval = self._waiting.pop(approval_id, None)
        self.echo.on()
        line = typed.rstrip(b"\r\n")
        scope = _SCOPES.get(" ".join(line.decode(errors="replace").lower().split()))
        try:
            if approval is not None and approval.action == "sudo" and line:
                self._client.approval_password(approval_id, line, by=_BY)
                console.say(f"{approval_id} is answered")
            elif scope is None:
                self._client.deny(approval_id, by=_BY)
                console.say(f"{approval_id} is denied")
            else:
                self._client.approve(approval_id, scope, by=_BY)
                console.say(f"{approval_id} is approved: {scope}")
        except (NotNow, NotFound) as late:
            console.say(late.message)

    def _leave(self) -> int:
        """The end of the input denies the request that is shown."""
        if self._shown is not None:
            self._answer(b"")
        return 0


def _fitting(command: str) -> str:
    """The beginning of a long command, and how to see the rest."""
    if len(command) <= _LONGEST_SHOWN:
        return command
    return f"{command[:_LONGEST_SHOWN]}…\n({len(command)} characters; all of it: holdfast approvals --json)"


def _ends_at(approval: Approval) -> float:
    """Requests whose caller waits come first."""
    return float(approval.fields.get("expires_at") or math.inf)


def _target(approval: Approval) -> str:
    if approval.action == "send":
        return f"typed into {approval.process}"
    again = " again" if approval.action == "restart" else ""
    return f"as {approval.process}{again}, on {console.visible(str(approval.fields['backend']))}"


class Echo:
    """The echo of the terminal on stdin, which is off while a password is typed. Call `on` at the end."""

    def __init__(self) -> None:
        self._before: Any = None

    def off(self) -> None:
        if self._before is None:
            self._before = termios.tcgetattr(0)
            settings = termios.tcgetattr(0)
            settings[_LOCAL_FLAGS] = settings[_LOCAL_FLAGS] & ~termios.ECHO | termios.ECHONL
            termios.tcsetattr(0, termios.TCSAFLUSH, settings)

    def on(self) -> None:
        if self._before is not None:
            termios.tcsetattr(0, termios.TCSAFLUSH, self._before)
            self._before = None
