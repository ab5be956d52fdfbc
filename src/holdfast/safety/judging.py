"""The judge: a command text and a policy give a verdict. No I/O; it never raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.safety.marks import cleaned
from holdfast.safety.places import SOMEWHERE, resolve
from holdfast.safety.policy import comes_before, default_policy
from holdfast.safety.programs import HANDLERS, perform
from holdfast.safety.reader import Reader, TooMuch
from holdfast.safety.rules import ALLOWED, Verdict, worse
from holdfast.safety.state import JudgeState, SimulatedCall, Word
from holdfast.safety.syntax import MOST_TEXT
from holdfast.safety.tables import DATABASES, KNOWN, LANGUAGES, LISTED, WRAPPERS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from holdfast.safety.policy import Policy
    from holdfast.safety.rules import Level

_MOST_SHOWN = 200
_STRICT = "the policy does not know this program"


def judge(command: str, policy: Policy, cwd: str | None = None, env: Mapping[str, str] | None = None) -> Verdict:
    """Whether a shell may run a command text; the worst of its calls counts.

    `env` holds the variables whose values are known.
    """
    state = first_state(cwd)
    for name, value in (env or {}).items():
        state.set(name, (cleaned(value),))
    return judge_in(state, command, policy, state.cwd)


def judge_argv(argv: Sequence[str], policy: Policy, cwd: str | None = None) -> Verdict:
    """Whether a program may be started with these arguments, without a shell."""
    state = first_state(cwd)
    if sum(map(len, argv)) > MOST_TEXT:
        return _verdict_of(SimulatedCall("@unparsed", (Word("it is too long"),)), policy, state.cwd)

    return judge_with(lambda reader: reader.start(argv, state), state, policy, state.cwd)


def judge_in(
    state: JudgeState,
    command: str,
    policy: Policy,
    start: str,
    *,
    passes: tuple[str, ...] = (),
    calls: list[SimulatedCall] | None = None,
) -> Verdict:
    """Judge a text in a state, which is updated. Findings in `passes` do not count; `calls` receives all calls."""

    def read(reader: Reader) -> None:
        reader.read(command, state)
        reader.read_uncalled(state)

    whole = _whole_text(command, policy)
    allowed_by = whole.level if whole and whole.action == "allow" else None
    found = judge_with(read, state, policy, start, allowed_by=allowed_by, passes=passes, calls=calls)
    return worse(found, whole) if whole else found


def first_state(cwd: str | None) -> JudgeState:
    return JudgeState(cwd=resolve(cleaned(cwd), SOMEWHERE) if cwd else SOMEWHERE)


def judge_with(
    read: Callable[[Reader], object],
    state: JudgeState,
    policy: Policy,
    start: str,
    *,
    allowed_by: Level | None = None,
    passes: tuple[str, ...] = (),
    calls: list[SimulatedCall] | None = None,
) -> Verdict:
    """Judge the calls that `read` makes a reader report."""
    reader = Reader(perform)
    depth = state.branches
    try:
        read(reader)
    except (TooMuch, RecursionError) as stopped:
        reader.find("@unparsed", "", str(stopped) if isinstance(stopped, TooMuch) else "it is nested too deep")
    except Exception as surprise:  # noqa: BLE001 - a failure of the judge must not allow a command
        reader.find("@unparsed", "", f"it could not be judged ({type(surprise).__name__})")
    state.branches = depth
    seen = [call for call in dict.fromkeys(reader.calls) if call.program not in passes]
    if calls is not None:
        calls += seen
    verdict = ALLOWED
    for call in seen:
        verdict = worse(verdict, _verdict_of(call, policy, start, allowed_by))
        if verdict.action == "deny":
            break
    return verdict


def _verdict_of(call: SimulatedCall, policy: Policy, start: str, allowed_by: Level | None = None) -> Verdict:
    strict = policy.strict if policy.strict and not _is_known(call.program) else None
    for level, rule in policy.about(call.program):
        if strict and comes_before(strict, "ask", level, rule.action):
            break
        if rule.fits(call, start):
            if allowed_by and comes_before(allowed_by, "allow", level, rule.action):
                return ALLOWED
            why = rule.why
            if call.program == "@unparsed" and call.arguments:
                why = f"{why}: {call.arguments[0].text}"
            word = _shortened(rule.word(call, start)) if rule.action != "allow" else ""
            return Verdict(rule.action, rule.name, why, _shortened(str(call)), level, word)
    if strict and not (allowed_by and comes_before(allowed_by, "allow", strict, "ask")):
        return Verdict("ask", "strict", _STRICT, _shortened(str(call)), strict, call.program)
    return ALLOWED


def _is_known(program: str) -> bool:
    tables: tuple[Collection[str], ...] = (KNOWN, LISTED, WRAPPERS, LANGUAGES, DATABASES, HANDLERS)
    return program[:1] in ("@", "<", ">") or any(program in table for table in (*tables, default_policy().programs))


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_SHOWN else line[: _MOST_SHOWN - 1] + "…"


def _whole_text(command: str, policy: Policy) -> Verdict | None:
    for level, rule in policy.about_text(command):
        return Verdict(rule.action, rule.name, rule.why, _shortened(command), level)
    return None
