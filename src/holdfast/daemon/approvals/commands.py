"""Starts and restarts: the command is judged, and waits for an approval where it needs one.

This is the one place where the daemon calls `holdfast.safety`, also for typed input. A command that cannot be judged
needs an approval: nothing is allowed by default.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from holdfast.daemon.approvals import gate, sandboxing
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.core.log import note
from holdfast.errors import BadValue, HoldfastError, Unreachable
from holdfast.model.approvals import ApprovalRecord
from holdfast.model.process import HeldProcess, Meta, ProcessId
from holdfast.ops.start import ApprovalOptions, Start
from holdfast.places.keeper_link import Refused
from holdfast.records import Struct
from holdfast.safety.variables import code_variable

if TYPE_CHECKING:
    from holdfast.daemon.handlers.start import StartSpec
    from holdfast.safety import SandboxProfile

#: Shells whose language is understood.
_SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"})
_OPERATOR_DIRECTORY = "/etc/holdfast"
#: A text of this length is judged in a thread.
_LONG = 500


class Judged(Struct, frozen=True):
    action: Literal["allow", "ask", "deny"]
    rule: str | None
    why: str
    level: str | None = None
    """The policy file of the rule; None where no rule decided."""


_ALLOWED = Judged("allow", None, "")
_RANK = {"allow": 0, "ask": 1, "deny": 2}


def _worst(judged: Sequence[Judged]) -> Judged:
    return max(judged, key=lambda one: _RANK[one.action])


class Use:
    """An approval that was claimed for an action; `is_done` is set when the action is done."""

    def __init__(self, approval: ApprovalRecord | None) -> None:
        self.approval = approval
        self.is_done = False


@asynccontextmanager
async def starting(context: DaemonContext, call: Call, ask: Start, start_spec: StartSpec) -> AsyncIterator[Use]:
    """While a command is started. Raises NotApproved."""
    if not ask.gate:
        await _forbidden(context, call, ask, start_spec)
        yield Use(None)
        return
    shell = start_spec.shell or context.settings.shell
    judged = await _judge(context, start_spec.meta, start_spec.text, shell, start_spec.grant)
    judged = await sandboxing.judged_in(context, start_spec.meta, start_spec.text, judged)
    async with using(context, await gate.pass_gate(context, call, _asked(context, ask, start_spec), judged)) as use:
        yield use


def _asked(context: DaemonContext, ask: Start, start_spec: StartSpec) -> gate.GatedAction:
    meta = start_spec.meta
    what: Message = {
        "process": meta.id,
        "command": meta.command,
        "argv": None if start_spec.text is not None else list(meta.argv),
        "shell": start_spec.shell,
        "cwd": meta.cwd,
        "grant": start_spec.grant,
        "stop_cmd": meta.stop_cmd,
    }
    if meta.sandbox:
        what["sandbox"] = {"writable": list(meta.writable), "network": meta.network or "none"}
    if meta.restart != "never":
        # One approval would cover every run: the policy is part of what is approved.
        what["restart"] = f"{meta.restart} {meta.restart_limit}"
    return gate.gated_action(context, ask, "start", meta.session, what, meta.id, meta.backend)


async def _forbidden(context: DaemonContext, call: Call, ask: Start, start_spec: StartSpec) -> None:
    """The operator's policy holds for all callers. Raises CommandDenied."""
    judged = await context.gate.forbidden(start_spec.text, start_spec.meta.argv, start_spec.meta.cwd)
    if judged.action == "deny":
        await gate.pass_gate(context, call, _asked(context, ask, start_spec), judged)


@asynccontextmanager
async def restarting(
    context: DaemonContext, call: Call, ask: ApprovalOptions, process: HeldProcess, run: int | None
) -> AsyncIterator[None]:
    """While a caller that is bound to a session restarts a process. The approval of the start does not cover it."""
    target = process.run + 1 if run is None else run
    if not call.is_strict or process.run >= target:
        yield
        return
    meta = process.meta
    what = {"process": meta.id, "command": meta.command, "argv": list(meta.argv), "cwd": meta.cwd}
    asked = gate.gated_action(context, ask, "restart", meta.session, what, f"{meta.id}#{target}", meta.backend)
    async with using(context, await gate.pass_gate(context, call, asked, await _judge_again(context, meta))) as use:
        yield
        use.is_done = True


@asynccontextmanager
async def using(context: DaemonContext, approval: ApprovalRecord | None) -> AsyncIterator[Use]:
    """The approval is spent when the action is done and released when it failed. If unknown, the claimant keeps it."""
    use = Use(approval)
    is_known = True
    try:
        yield use
    except BaseException as failed:
        is_known = isinstance(failed, (HoldfastError, Refused)) and not isinstance(failed, Unreachable)
        raise
    finally:
        if approval is not None and use.is_done:
            context.approvals.spend(approval)
        elif approval is not None and is_known:
            context.approvals.release(approval)


def was_used(context: DaemonContext, claimant: str) -> bool:
    """Whether the action of a claimant was done before a crash. Typed text counts as done, because that is unknown."""
    process_id, _, run = claimant.partition("#")
    process = context.registry.get(ProcessId(process_id))
    if "@" in claimant:
        return True
    return process is not None and (not run or process.run >= int(run))


async def _judge(context: DaemonContext, meta: Meta, text: str | None, shell: str, given: dict[str, str]) -> Judged:
    if text is None:
        found = [await context.gate.argv(meta.argv, meta.cwd)]
    else:
        found = [await context.gate.text(text, meta.cwd, given), _shell(shell)]
    if meta.stop_cmd is not None:
        found.append(await context.gate.text(meta.stop_cmd, meta.cwd, given))
    return _worst([*found, _variables(given)])


async def _judge_again(context: DaemonContext, meta: Meta) -> Judged:
    """Judged by the same data as when it was started."""
    text = None if meta.command == shlex.join(meta.argv) else meta.command
    try:
        given = await asyncio.to_thread(_given, context, meta) if meta.given else {}
    except (OSError, ValueError, KeyError, TypeError):
        return Judged("ask", None, "the variables that were given for it cannot be read")
    judged = await _judge(context, meta, text, meta.argv[0] if meta.argv else "", given)
    return await sandboxing.judged_in(context, meta, text, judged)


def _given(context: DaemonContext, meta: Meta) -> dict[str, str]:
    env = context.places.get(meta.place).spec(meta.id)["env"]
    return {name: env[name] for name in meta.given}


def _shell(shell: str) -> Judged:
    if shell and os.path.basename(shell) not in _SHELLS:
        return Judged(
            "ask",
            "other-shell",
            f"it is for the shell {os.path.basename(shell)[:40]}, which cannot be judged",
            "default",
        )
    return _ALLOWED


def _variables(grant: dict[str, str]) -> Judged:
    if name := code_variable(grant):
        return Judged("ask", "steering-variable", f"the variable {name[:40]} can make it run other commands", "default")
    return _ALLOWED


class Gate:
    """Judges by the policies: `home` holds the user's policy. Policies are read again when they have changed."""

    def __init__(self, home: str) -> None:
        self._home = home
        operator = os.environ.get("HOLDFAST_POLICY_DIR") or _OPERATOR_DIRECTORY
        self._operator_file = f"{operator}/policy.toml"
        self._files = (self._operator_file, f"{home}/policy.toml")
        self._read: tuple[object, Any] = (None, None)

    async def text(self, text: str, cwd: str, env: Mapping[str, str] | None = None) -> Judged:
        """A command text for a shell; `env` holds the variables that are known."""
        return await _judged(lambda safety: safety.judge(text, self._policy(safety), cwd, env), len(text))

    async def explained(self, text: str, cwd: str | None, profile: str | None) -> dict[str, Any]:
        """The verdict on a command text with its reasons; `profile` replaces the one of the policy."""

        def judge() -> dict[str, Any]:
            safety = _safety()
            policy = self._policy(safety)
            if profile is not None:
                strict = "user" if profile == "strict" else None
                confined = (policy.sandbox or safety.SandboxProfile()) if profile == "sandbox" else None
                policy = replace(policy, strict=strict, sandbox=confined)
            found = safety.judge(text, policy, cwd)
            action, rule, why, level = found.action, found.rule, found.why, found.level if found.rule else None
            sandbox = None
            if policy.sandbox and found.action != "deny" and safety.judge(text, policy.outside, cwd).action != "allow":
                sandbox = {"writable": sandboxing.granted(policy.sandbox), "network": policy.sandbox.network}
                if level in (None, "default"):
                    action, rule, level, why = "allow", "sandbox", policy.sandbox.level, "it runs in the sandbox"
            shown = {"reason": why, "part": found.where, "word": found.word, "level": level, "sandbox": sandbox}
            return {"action": action, "rule": rule, **shown}

        return await asyncio.to_thread(judge)

    async def argv(self, argv: Sequence[str], cwd: str) -> Judged:
        """A command that runs without a shell."""
        size = sum(map(len, argv))
        return await _judged(lambda safety: safety.judge_argv(list(argv), self._policy(safety), cwd), size)

    async def sandbox(self) -> SandboxProfile | None:
        """The profile that commands run in a sandbox by; None for another profile, and where the policy is invalid."""
        if all(_mark(file) is None for file in self._files):
            return None
        try:
            found: SandboxProfile | None = (await asyncio.to_thread(lambda: self._policy(_safety()))).sandbox
        except BadValue:
            return None  # then every command asks
        return found

    async def may_leave(self, text: str | None, argv: Sequence[str], cwd: str) -> bool:
        """Whether rules of the user or the operator allow a command outside the sandbox."""

        def judge(safety: Any) -> Any:
            policy = self._policy(safety).outside
            return safety.judge_argv(list(argv), policy, cwd) if text is None else safety.judge(text, policy, cwd)

        return (await _judged(judge)).action == "allow"

    async def forbidden(self, text: str | None, argv: Sequence[str], cwd: str) -> Judged:
        """Whether the operator's policy denies it to all callers. Costs nothing where there is no such policy."""
        if _mark(self._operator_file) is None:
            return _ALLOWED

        def judge(safety: Any) -> Any:
            policy = self._denied(safety)
            return safety.judge_argv(list(argv), policy, cwd) if text is None else safety.judge(text, policy, cwd)

        judged = await _judged(judge, unreadable="deny")
        return judged if judged.action == "deny" else _ALLOWED

    async def reader(self, command: str | Sequence[str], cwd: str, *, terminal: bool = True) -> Any:
        """The reader of the input of a process that was started like this; None when it is unknown."""
        try:
            return await asyncio.to_thread(lambda: _safety().shell_state(command, cwd, terminal=terminal))
        except Exception as failed:  # noqa: BLE001 - its input cannot be judged then, and needs approval
            note("not-judged", why=repr(failed))
            return None

    async def typed(self, data: bytes, reader: Any) -> Judged:
        """Text typed into a process, judged for its reader. The reader's state follows text that is allowed."""
        return await _judged(lambda safety: safety.judge_input(data, reader, self._policy(safety)))

    async def accept(self, data: bytes, reader: Any) -> None:
        """Typed text was approved: the reader's state follows it."""
        if reader is not None:
            await asyncio.to_thread(lambda: reader.accept(data, self._policy(_safety())))

    def _policy(self, safety: Any) -> Any:
        marks = tuple(map(_mark, self._files))
        if self._read[0] != marks:
            self._read = (marks, safety.load_policy(self._home))
        return self._read[1]

    def _denied(self, safety: Any) -> Any:
        rules = self._policy(safety).levels["operator"]
        return safety.Policy({"operator": tuple(rule for rule in rules if rule.action == "deny")})


def _mark(path: str) -> object:
    """Differs when the file changed; None where there is none. A file that cannot be read counts as present."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as hidden:
        return hidden.errno
    return found.st_ino, found.st_mtime_ns, found.st_size


async def _judged(work: Callable[[Any], Any], size: int = _LONG, unreadable: Literal["ask", "deny"] = "ask") -> Judged:
    """`size` of the text: to judge a short one takes less time than a switch of threads costs."""
    try:
        if size < _LONG and "holdfast.safety" in sys.modules:
            verdict = work(_safety())
        else:
            verdict = await asyncio.to_thread(lambda: work(_safety()))
        return Judged(verdict.action, verdict.rule, verdict.why, verdict.level if verdict.rule else None)
    except BadValue as broken:
        note("policy-unreadable", why=broken.message)
        return Judged(unreadable, None, f"the policy cannot be read: {broken.message}")
    except Exception as failed:  # noqa: BLE001 - a failure of the judge must not allow anything
        note("not-judged", why=repr(failed))
        return Judged("ask", None, f"it could not be judged ({type(failed).__name__})")


def _safety() -> Any:
    """Imported when the first command is judged, in a thread: it takes a while."""
    import holdfast.safety

    return holdfast.safety
