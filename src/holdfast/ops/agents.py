"""Operations on the agents of sessions: what each does, its log, and what the user says to it."""

from __future__ import annotations

from holdfast.errors import BadValue
from holdfast.ops.declare import Operation, Record, Scope, Traits, field
from holdfast.ops.start import check_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from holdfast.ops.kinds import Environment, Flag, Integer, Seconds, SessionName, Text
    from holdfast.ops.records import AgentFields, AgentLogEntryFields

#: Entries of one reply.
MOST_ENTRIES = 1000
LONGEST_WAIT = 300.0
_LONGEST_MESSAGE = 200 << 10
_INPUT_ID = "^[A-Za-z0-9_-]{1,64}$"


def _check_session(value: str) -> None:
    from holdfast.model.agents import AGENTS

    if value == AGENTS:
        raise BadValue("this is the session of the agents themselves", next="choose another session")


def _check_text(value: str) -> None:
    if not value.strip():
        raise BadValue("the message is empty", next="write something")


def _check_input(value: str) -> None:
    import re

    if not re.fullmatch(_INPUT_ID, value):
        raise BadValue("id must have 1 to 64 of A-Z a-z 0-9 _ -")


class Agents(Operation):
    """List the sessions that have a conversation with an agent, the one that was used last first."""

    class Reply(Record):
        agents: list[AgentFields] = field()
        model: Text | None = field(
            help="The model of `agent/config.toml`; null where none is configured: holdfast agent --setup."
        )

    traits = Traits(reads=True, route="GET /agents", http_name="listAgents")


class AgentLog(Operation):
    """Read entries of the log of a session's agent, oldest first, 1 MiB at most."""

    session: SessionName = field(help="The session.")
    after: Integer | None = field(None, help="The entries behind the one with this id. Default: the newest ones.")
    before: Integer | None = field(None, least=1, help="The newest entries before the one with this id.")
    limit: Integer = field(200, least=1, most=MOST_ENTRIES, help="The most entries to return.")
    wait: Seconds = field(0.0, most=LONGEST_WAIT, help="With `after`: seconds to wait if there is none, at most 300.")

    class Reply(Record):
        entries: list[AgentLogEntryFields] = field()
        more: Flag = field(help="Whether there are others: behind them with `after`, else before them.")
        newest: Integer = field(help="The id of the newest entry; 0 while the log has none.")

    traits = Traits(
        reads=True,
        waits=True,
        scope=Scope.SESSION,
        route="GET /sessions/{session}/agent/log",
        http_name="readAgentLog",
        positional=("session",),
    )


class AgentLaunch(Operation):
    """What an agent is started with, if none runs for the session."""

    session: SessionName = field(rule=_check_session, help="The session.")
    env: Environment | None = field(
        None,
        help="The environment of the caller, which is added to that of a login shell. It may have the endpoint "
        "(OPENAI_BASE_URL), its key (OPENAI_API_KEY) and the model (HOLDFAST_MODEL). Default: agent/config.toml "
        "has them.",
    )
    cwd: Text | None = field(
        None,
        longest=4095,
        required_text=True,
        rule=check_directory,
        help="The directory that it works in. Default: that of the session's last agent, else the home directory.",
    )
    umask: Integer | None = field(None, most=0o777, help="Its umask. Default: 022.")
    acp: Text | None = field(
        None,
        longest=4096,
        required_text=True,
        help="For a new session: an agent program that speaks the Agent Client Protocol. The NAME of an `[acp.NAME]` "
        "table in `agent/config.toml`, `claude-code`, `codex`, or a command. Default: a model.",
    )


class AgentStart(AgentLaunch):
    """Start the agent of a session, unless it runs. The reply comes when it has the session."""

    since: Integer | None = field(
        None, help="For a new session: the number of the event before its first message. Default: the newest event."
    )

    class Reply(Record):
        started: Flag = field(help="False where it ran already.")

    traits = Traits(
        completes=True,
        waits=True,
        scope=Scope.SPECIAL,
        route="POST /sessions/{session}/agent/start",
        http_name="startAgent",
        positional=("session",),
        returns="started",
    )


class AgentSend(AgentLaunch):
    """Send a message of the user to the agent of a session, which is started if none runs. The message is in the log
    when the reply comes. What the agent does is interrupted; background processes go on.
    """

    text: Text = field(longest=_LONGEST_MESSAGE, rule=_check_text, help="The message.")
    id: Text = field(
        longest=64,
        pattern=_INPUT_ID,
        rule=_check_input,
        help="Chosen by the caller: the same message sent again with the same id is one message. Its entry has it as "
        "`input`.",
    )

    class Reply(Record):
        entry: Integer = field(help="The id of its entry in the log.")

    traits = Traits(
        completes=True,
        waits=True,
        scope=Scope.SPECIAL,
        route="POST /sessions/{session}/agent/messages",
        http_name="sendToAgent",
        positional=("session", "text"),
        returns="entry",
    )


class AgentSettings(AgentLaunch):
    """Change settings of a session's agent, from its next step on. They are in the log when the reply comes."""

    model: Text | None = field(None, longest=1024, required_text=True, help="The model.")
    base_url: Text | None = field(None, longest=4096, required_text=True, help="The endpoint.")
    toolset: Text | None = field(None, longest=256, required_text=True, help="The toolset.")

    class Reply(Record):
        pass

    traits = Traits(
        completes=True,
        waits=True,
        scope=Scope.SPECIAL,
        route="POST /sessions/{session}/agent/settings",
        http_name="setAgent",
        positional=("session",),
    )


class AgentControl(Operation):
    """Interrupt the agent of a session, compact its conversation, or stop it. The request is on disk with the reply."""

    session: SessionName = field(rule=_check_session, help="The session.")
    action: Literal["interrupt", "compact", "stop"] = field(
        help="`interrupt`: end what it does now. `compact`: summarise the conversation. `stop`: end the agent after "
        "what it does now; the next message starts it again. Background processes go on."
    )

    class Reply(Record):
        pass

    traits = Traits(
        completes=True,
        scope=Scope.SPECIAL,
        route="POST /sessions/{session}/agent/control",
        http_name="controlAgent",
        positional=("session", "action"),
    )
