"""What the user does to processes: end, restart, type a line, answer a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.client.process import Process
from holdfast.client.results.approval import Approval
from holdfast.errors import HoldfastError
from holdfast.tui.widgets.dialogs import ApprovalDialog, ConfirmDialog, Decision, LineDialog

if TYPE_CHECKING:
    from holdfast.tui.app import HoldfastApp


class ProcessActions:
    """Runs beside the app: it never blocks it."""

    def __init__(self, app: HoldfastApp) -> None:
        self._app = app

    def _say(self, text: str, kind: str = "") -> None:
        self._app.say(text, kind)

    async def end(self, process: Process) -> None:
        """After one question. SIGTERM, then SIGKILL where that is not enough."""
        name = process.name or process.id
        if process.status == "ended":
            self._say(f"{name} has ended")
            return
        if not await self._app.push_screen_wait(
            ConfirmDialog(f"End {name} and everything it started?", str(process.command), f"session {process.session}")
        ):
            return
        self._say(f"{name}: asked to end; forced after the grace period…", "busy")
        try:
            [result] = await self._app.feed.client.kill(process.id)
        except HoldfastError as failed:
            self._fail(failed)
            return
        left = f"; still alive: {result.survivors}" if result.survivors else ""
        what = "had ended" if result.already_ended else "ended by force" if result.forced else "ended"
        self._say(f"{name} {what}{left}")

    async def restart(self, process: Process) -> None:
        name = process.name or process.id
        if process.status != "ended" and not await self._app.push_screen_wait(
            ConfirmDialog(f"Restart {name}? It runs now, and is ended first.", str(process.command))
        ):
            return
        self._say(f"{name}: restarting…", "busy")
        try:
            await self._app.feed.client.restart(process.id)
        except HoldfastError as failed:
            self._fail(failed)
        else:
            self._say(f"{name} runs again")

    async def type_line(self, process: Process) -> None:
        """One line for its input; a secret is not shown."""
        question = process.needs_input or {}
        is_secret = bool(question.get("secret"))
        asked = str(question.get("prompt") or "").strip() or f"a line for {process.name or process.id}"
        line = await self._app.push_screen_wait(LineDialog(asked, is_secret=is_secret))
        if line is None:
            return
        try:
            await self._app.feed.client.send(process.id, line, secret=is_secret)
        except HoldfastError as failed:
            self._fail(failed)
        else:
            self._app.feed.touch(process.id)
            self._say("sent")

    async def answer(self, approval: Approval) -> None:
        decision = await self._app.push_screen_wait(ApprovalDialog(approval))
        if decision is None:
            return
        try:
            await self._decide(decision)
        except HoldfastError as failed:
            self._fail(failed)

    async def _decide(self, decision: Decision) -> None:
        client = self._app.feed.client
        if decision.password is not None:
            await client.approval_password(decision.approval, decision.password)
            self._say("the password was sent")
        elif decision.scope == "deny":
            await client.deny(decision.approval)
            self._say("denied")
        else:
            await client.approve(decision.approval, decision.scope)
            self._say(f"approved: {decision.scope}")

    def _fail(self, failed: HoldfastError) -> None:
        self._say(f"{failed.message}. Next: {failed.next}" if failed.next else failed.message, "error")
