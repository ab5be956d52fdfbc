"""The secrets that the daemon has seen: in memory alone, to keep them out of environments and of what models read.

What a start brings along is noted at once and looked through when somebody needs to know: a start does not wait for
it. After a restart of the daemon the environments of commands that are still remembered are looked through again.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.daemon.start.environment import NEEDED
from holdfast.model.matches import MOST_LINES, WatchMatch
from holdfast.places.base import ExecutionPlace
from holdfast.secrets.environment import known_forms, masked_forms, secret_names
from holdfast.secrets.redact import Forms, for_model
from holdfast.settings import Settings

#: So many values are remembered, the newest of all. Each costs time in every text that is shown.
_MOST = 2000
#: So many environments wait to be looked through.
_MOST_NOTED = 64
#: Texts wait as long for what is known from before a restart.
_RELEARN_BUDGET = 5.0
#: So many names are told of those that were left out.
_MOST_NAMED = 20

Environment = Mapping[str, str]


class KnownSecrets:
    """`configured` tells the secrets in holdfast's own configuration, as they are now."""

    def __init__(self, settings: Settings, configured: Callable[[], Iterable[str]]) -> None:
        self.is_on = settings.redact
        self._passed = frozenset(settings.pass_env)
        self._configured = configured
        self._noted: list[Environment] = []
        self._forms: dict[str, None] = {}
        self._turn = threading.Lock()
        self._has_relearned = threading.Event()
        self._has_relearned.set()

    def note(self, env: Environment) -> None:
        """Remember the secrets of an environment, some time before the next text is masked."""
        self._noted.append(env)
        if len(self._noted) > _MOST_NOTED:
            asyncio.get_running_loop().run_in_executor(None, self._forms_now)

    def to_remove(self, env: Environment, granted: Iterable[str]) -> tuple[str, ...]:
        """The names of what is left out of an environment: secrets that nobody granted. Takes a moment."""
        found = secret_names(env, {value for value in self._configured() if value})
        return tuple(sorted(found - NEEDED - self._passed - set(granted)))

    async def mask(self, value: Any) -> Any:
        """A JSON value with the secrets in its texts masked; as it is, where the owner wants it so."""
        return await asyncio.to_thread(self.masked, value) if self.is_on else value

    async def mask_matches(self, matches: Sequence[WatchMatch]) -> list[WatchMatch]:
        """Lines that a watch found, masked as far as they can be told: the rest of them is only counted."""
        if not matches or not self.is_on:
            return list(matches)
        told = {*range(min(len(matches), MOST_LINES + 1)), len(matches) - 1}
        outputs = dict(zip(told, await self.mask([matches[index].output for index in told]), strict=True))
        return [
            replace(match, output=outputs[index]) if index in outputs else match for index, match in enumerate(matches)
        ]

    def masked(self, value: Any) -> Any:
        """As `mask`, in a thread that may take its time."""
        if not self.is_on:
            return value
        forms = self._forms_now()
        return _each_text(value, lambda text: for_model(text, forms))

    def masked_text(self, text: str) -> str:
        return for_model(text, self._forms_now()) if self.is_on else text

    def _forms_now(self) -> Forms:
        self._has_relearned.wait(_RELEARN_BUDGET)
        with self._turn:
            noted, self._noted = self._noted, []
            for env in noted:
                self._remember(known_forms(env))
            ours = {form for value in self._configured() if value for form in masked_forms(value)}
            return Forms.of([*self._forms, *ours])

    def _remember(self, forms: Iterable[str]) -> None:
        for form in forms:
            self._forms.pop(form, None)
            self._forms[form] = None
        for oldest in list(self._forms)[: max(0, len(self._forms) - _MOST)]:
            del self._forms[oldest]

    async def relearn(self, place: ExecutionPlace) -> None:
        """Look through the environments of all commands that are on disk; what cannot be read is done without."""
        self._has_relearned.clear()
        try:
            await asyncio.to_thread(self._relearn, place)
        finally:
            self._has_relearned.set()

    def _relearn(self, place: ExecutionPlace) -> None:
        judged: set[tuple[str, str]] = set()  # most environments are alike
        for spec in place.specs():
            news = _environment(spec).items() - judged
            judged |= news
            with self._turn:
                self._remember(known_forms(dict(news)))


def left_out(names: tuple[str, ...]) -> str:
    """The note on a start. A name can be anything: one that looks like a secret is masked as well."""
    shown = ", ".join(for_model(ascii(name)[1:-1][:80]) for name in names[:_MOST_NAMED])
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"left out of its environment as secrets: {shown}{more}; grant one by name (--env NAME, pass_env)"


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _each_text(one, change) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_each_text(one, change) for one in value]
    return value


def _environment(spec: dict[str, Any]) -> dict[str, str]:
    env = spec.get("env")
    return {name: value for name, value in env.items() if isinstance(value, str)} if isinstance(env, dict) else {}
