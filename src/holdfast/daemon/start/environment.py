"""The environment of a command, and the secrets that the daemon has seen in environments.

A command gets the login environment, then the caller's variables, then granted ones.

Secrets are kept in memory only, to keep them out of environments and of texts for models. The environment of a start
is noted at once and searched for secrets before the next text is masked: a start does not wait for it. After a restart
of the daemon the environments of all known commands are searched again.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from holdfast import light_json
from holdfast.model.notices.matches import MOST_LINES, WatchMatch
from holdfast.model.process import ProcessId
from holdfast.places.base import ExecutionPlace
from holdfast.records import replace
from holdfast.secrets.environment import known_forms, masked_forms, secret_names
from holdfast.settings import Settings

if TYPE_CHECKING:
    from holdfast.secrets.redact import Forms

Environment = Mapping[str, str]

TERM = "xterm-256color"
#: These describe the caller's terminal: its size, its window, the multiplexer or emulator that it belongs to.
_OF_A_TERMINAL = frozenset({
    "COLUMNS", "LINES", "TERMCAP", "COLORFGBG", "TMUX", "TMUX_PANE", "STY", "WINDOW", "WINDOWID", "VTE_VERSION",
    "TERM_SESSION_ID", "LC_TERMINAL", "LC_TERMINAL_VERSION", "TILIX_ID", "TERMINATOR_UUID", "WT_SESSION",
    "WT_PROFILE_ID", "SSH_TTY", "GPG_TTY", "INSIDE_EMACS",
})  # fmt: skip
_PREFIXES = (
    "ZELLIJ", "TERM_PROGRAM", "KITTY_", "WEZTERM_", "ALACRITTY_", "GHOSTTY_", "ITERM_", "KONSOLE_", "GNOME_TERMINAL_",
)  # fmt: skip
#: Most programs need these: they are kept even if they look like secrets.
_NEEDED = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TZ", "TMPDIR", "PWD"})

#: Of holdfast's own variables, those that a sandbox has as well.
_OF_A_COMMAND = frozenset({"HOLDFAST_ID", "HOLDFAST_SESSION"})
_TEMPORARY = frozenset({"TMPDIR", "TMP", "TEMP"})
_TRAIL = re.compile(r"sessions/[0-9a-f]{16}\.trail")

#: Values that are remembered, the newest ones. Each costs time in every text that is masked.
_MOST = 2000
#: Environments that may wait to be searched.
_MOST_NOTED = 64
#: After a restart, masking waits this long for the search of known environments.
_RELEARN_BUDGET = 5.0
#: Characters of an environment that is searched in a thread.
_LARGE = 32 << 10
#: A text of up to this many bytes is masked by up to this many secrets in less time than a switch of threads costs.
_SMALL = 1024
_FEW = 20
#: Names of removed variables that a note lists.
_MOST_NAMED = 20


def merge(login: Environment, caller: Environment, grant: Environment, own: Environment, pty: bool) -> dict[str, str]:
    """The environment of a command. `own` holds variables of holdfast, which cannot be overridden."""
    env = {**login, **caller}
    path = merge_path(caller.get("PATH"), login.get("PATH"))
    if path:
        env["PATH"] = path
    if pty:
        env = {name: value for name, value in env.items() if not _is_of_a_terminal(name)}
        env["TERM"] = TERM
    env.update(grant)
    env.setdefault("PYTHONUNBUFFERED", "1")
    env.update(own)
    return env


def in_sandbox(env: Environment, granted: Collection[str], home: str) -> tuple[dict[str, str], dict[str, bool]]:
    """Without the instance, which is hidden there, and without the directory for temporary files, which is /tmp; and
    the files of the instance that are visible, each with whether it can be written: where the tool `terminal` reads and
    writes the directory of its session.
    """
    kept, shown = _OF_A_COMMAND, {}
    trail = env.get("HOLDFAST_CWD_FILE", "")
    if trail.startswith(f"{home}/") and _TRAIL.fullmatch(trail[len(home) + 1 :]):
        shown = {f"{home}/sessions/cwd.bash": False, trail: True}
        kept = kept | {"HOLDFAST_CWD_FILE", "HOLDFAST_BASH_ENV"}
    dropped = {name for name in env if name.startswith("HOLDFAST_")} - kept | _TEMPORARY - set(granted)
    return without(env, dropped), shown


def _is_of_a_terminal(name: str) -> bool:
    return name in _OF_A_TERMINAL or name.startswith(_PREFIXES)


def merge_path(caller: str | None, login: str | None) -> str:
    """The caller's entries in their order, then those of the login environment that are missing."""
    entries = [*(caller or "").split(":"), *(login or "").split(":")]
    return ":".join(dict.fromkeys([entry for entry in entries if entry]))


def without(env: Environment, removed: Collection[str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name not in removed}


class KnownSecrets:
    """`configured` gives the secrets in holdfast's own configuration, `resolve` the current name of a session.

    What a session is shown is masked by its own secrets: by those of others it could check a guess.
    """

    def __init__(
        self, settings: Settings, configured: Callable[[], Iterable[str]], resolve: Callable[[str], str] = str
    ) -> None:
        self.is_on = settings.redact
        self._passed = frozenset(settings.pass_env)
        self._configured = configured
        self._resolve = resolve
        self._noted: list[tuple[Callable[[], Environment], str]] = []
        #: The last environment of each session: callers send the same one again and again.
        self._last: dict[str, Environment] = {}
        #: With the sessions whose processes have it.
        self._forms: dict[str, set[str]] = {}
        self._turn = threading.Lock()
        self._has_relearned = threading.Event()
        self._has_relearned.set()

    def note(self, env: Environment, session: str) -> None:
        """Remember the secrets of an environment, before the next text is masked."""
        if self._last.get(session) != env:
            if len(self._last) >= _MOST_NOTED:
                self._last.clear()
            self._last[session] = env
            self._note(lambda: env, session)

    def transferred(self, place_of: Callable[[ProcessId], ExecutionPlace], process_id: ProcessId, session: str) -> None:
        """The secrets of a process are those of its new owner, too."""
        place = place_of(process_id)
        self._note(lambda: _known_environment(place, process_id), session)

    def _note(self, read: Callable[[], Environment], session: str) -> None:
        self._noted.append((read, session))
        if len(self._noted) > _MOST_NOTED:
            asyncio.get_running_loop().run_in_executor(None, self._forms_now)

    async def to_remove(self, env: Environment, granted: Iterable[str]) -> tuple[str, ...]:
        """The variables to leave out of an environment: secrets that were not granted."""
        configured = {value for value in self._configured() if value}
        if sum(map(len, env.values())) < _LARGE:  # it takes less time than a switch of threads costs
            found = secret_names(env, configured)
        else:
            found = await asyncio.to_thread(secret_names, env, configured)
        return tuple(sorted(found - _NEEDED - self._passed - set(granted)))

    async def mask(self, value: Any, session: str | None) -> Any:
        """A JSON value with the secrets of a session, or all, masked; unchanged where the settings say so."""
        if not self.is_on or not value:
            return value
        if self._is_idle and len(light_json.dump_bytes(value)) < _SMALL:
            return self._masked(value, session)
        return await asyncio.to_thread(self._masked, value, session)

    @property
    def _is_idle(self) -> bool:
        """Whether the known secrets are few, and known at once."""
        is_busy = self._noted or self._turn.locked() or not self._has_relearned.is_set()
        return not is_busy and len(self._forms) <= _FEW

    async def mask_matches(self, matches: Sequence[WatchMatch], session: str) -> list[WatchMatch]:
        """Matches with masked lines. Lines in the middle of many are not masked: notices only count them."""
        if not matches or not self.is_on:
            return list(matches)
        quoted = {*range(min(len(matches), MOST_LINES + 1)), len(matches) - 1}
        masked = await self.mask([matches[index].output for index in quoted], session)
        outputs = dict(zip(quoted, masked, strict=True))
        return [
            replace(match, output=outputs[index]) if index in outputs else match for index, match in enumerate(matches)
        ]

    def _masked(self, value: Any, session: str | None) -> Any:
        from holdfast.secrets.redact import for_model

        forms = self._forms_now(session)
        return _each_text(value, lambda text: for_model(text, forms))

    def masked_text(self, text: str, session: str) -> str:
        """To be called in a thread."""
        from holdfast.secrets.redact import for_model

        return for_model(text, self._forms_now(session)) if self.is_on else text

    def _forms_now(self, session: str | None = None) -> Forms:
        """The secrets of a session, or all."""
        self._has_relearned.wait(_RELEARN_BUDGET)
        with self._turn:
            noted, self._noted = self._noted, []
            for read, owner in noted:
                self._remember(known_forms(read()), owner)
            ours = {form for value in self._configured() if value for form in masked_forms(value)}
            known = self._forms
            if session is not None:
                known = {form: names for form, names in known.items() if session in map(self._resolve, names)}
            from holdfast.secrets.redact import Forms

            return Forms.of([*known, *ours])

    def _remember(self, forms: Iterable[str], session: str) -> None:
        for form in forms:
            self._forms[form] = {*self._forms.pop(form, ()), session}
        for oldest in list(self._forms)[: max(0, len(self._forms) - _MOST)]:
            self._last.clear()
            del self._forms[oldest]

    async def relearn(self, places: list[ExecutionPlace], owner: Callable[[ProcessId], str | None]) -> None:
        """Search the environments of all commands on disk. Specs that cannot be read are left out.

        `owner` gives the session that owns a process.
        """
        self._has_relearned.clear()
        try:
            await asyncio.to_thread(self._relearn, places, owner)
        finally:
            self._has_relearned.set()

    def _relearn(self, places: list[ExecutionPlace], owner: Callable[[ProcessId], str | None]) -> None:
        judged: dict[str, set[tuple[str, str]]] = {}  # most environments are alike
        for spec in chain.from_iterable(place.specs() for place in places):
            session = _session(spec, owner)
            new = _environment(spec).items() - judged.setdefault(session, set())
            judged[session] |= new
            with self._turn:
                self._remember(known_forms(dict(new)), session)


def left_out(names: tuple[str, ...]) -> str:
    """The note on a start. A name can be anything: one that looks like a secret is masked as well."""
    from holdfast.secrets.redact import for_model

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


def _known_environment(place: ExecutionPlace, process_id: ProcessId) -> Environment:
    try:
        return _environment(place.spec(process_id))
    except (OSError, ValueError):
        return {}


def _session(spec: dict[str, Any], owner: Callable[[ProcessId], str | None]) -> str:
    """The session that owns it, or did when it was started."""
    meta = spec.get("meta")
    known = meta if isinstance(meta, dict) else {}
    return owner(ProcessId(str(known.get("id")))) or str(known.get("session"))


def _environment(spec: dict[str, Any]) -> dict[str, str]:
    env = spec.get("env")
    return {name: value for name, value in env.items() if isinstance(value, str)} if isinstance(env, dict) else {}
