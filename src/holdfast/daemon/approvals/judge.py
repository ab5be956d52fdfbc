"""The judge: the one place where the daemon calls `holdfast.safety`.

A command that cannot be judged needs an approval: nothing is allowed by default.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from holdfast.daemon.core.log import note
from holdfast.errors import BadValue

_OPERATOR_DIRECTORY = "/etc/holdfast"
#: A text of this length is judged in a thread.
_LONG = 500


class Judged(NamedTuple):
    action: Literal["allow", "ask", "deny"]
    rule: str | None
    why: str


ALLOWED = Judged("allow", None, "")
_RANK = {"allow": 0, "ask": 1, "deny": 2}


def worst(judged: Sequence[Judged]) -> Judged:
    return max(judged, key=lambda one: _RANK[one.action])


class Gate:
    """`home` holds the user's policy. Policies are read again when they have changed."""

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
                policy = replace(policy, strict="user" if profile == "strict" else None)
            found = safety.judge(text, policy, cwd)
            level = found.level if found.rule else None
            why = {"reason": found.why, "part": found.where, "word": found.word, "level": level, "sandbox": None}
            return {"action": found.action, "rule": found.rule, **why}

        return await asyncio.to_thread(judge)

    async def argv(self, argv: Sequence[str], cwd: str) -> Judged:
        """A command that runs without a shell."""
        size = sum(map(len, argv))
        return await _judged(lambda safety: safety.judge_argv(list(argv), self._policy(safety), cwd), size)

    async def forbidden(self, text: str | None, argv: Sequence[str], cwd: str) -> Judged:
        """Whether the operator's policy denies it to all callers. Costs nothing where there is no such policy."""
        if _mark(self._operator_file) is None:
            return ALLOWED

        def judge(safety: Any) -> Any:
            policy = self._denied(safety)
            return safety.judge_argv(list(argv), policy, cwd) if text is None else safety.judge(text, policy, cwd)

        judged = await _judged(judge, unreadable="deny")
        return judged if judged.action == "deny" else ALLOWED

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
        return Judged(verdict.action, verdict.rule, verdict.why)
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
