"""The tools of an agent: `terminal` and `process`, as schemas for function calling and as calls that never raise.

Names are loaded when they are first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.tools.aio import AsyncTools
    from holdfast.tools.answers import Limits
    from holdfast.tools.schemas import PROCESS_SCHEMA, TERMINAL_SCHEMA, anthropic_schemas, openai_schemas
    from holdfast.tools.sync import Tools, aprocess, aterminal, interrupt, process, terminal

__all__ = [
    # schemas for a model
    "TERMINAL_SCHEMA", "PROCESS_SCHEMA", "openai_schemas", "anthropic_schemas",
    # calls, for the session that HOLDFAST_SESSION or `session` names
    "terminal", "process", "aterminal", "aprocess", "interrupt",
    # the same for one session, held open
    "Tools", "AsyncTools", "Limits",
]  # fmt: skip

_MODULES = {"AsyncTools": "aio", "Limits": "answers"}
_MODULES |= dict.fromkeys(("TERMINAL_SCHEMA", "PROCESS_SCHEMA", "openai_schemas", "anthropic_schemas"), "schemas")


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'holdfast.tools' has no attribute {name!r}")
    module = f"holdfast.tools.{_MODULES.get(name, 'sync')}"
    value: object = getattr(__import__(module, fromlist=[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
