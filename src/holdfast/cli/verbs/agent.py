"""`holdfast agent`."""

from __future__ import annotations

import os
import sys

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.errors import BadValue, HoldfastError, NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.cli.terminal.agent_output import Mode
    from holdfast.session_log import LoggedSession

_FORMATS = ("jsonl", "openai", "markdown", "atif")

VERB = Verb(
    "agent",
    synopsis=[
        "agent [PROMPT] [--session S] [--resume] [--model M] [--base-url URL] [--toolset T] [--json] [--quiet]",
        "agent [PROMPT] --acp NAME|COMMAND [--session S] [--json] [--quiet]",
        "agent log [SESSION] [--format jsonl|openai|markdown|atif]",
        "agent --setup",
    ],
    about="""
        An agent that works with the tools terminal and process, and on files. It uses a model of any OpenAI-compatible
        endpoint. With PROMPT it does one turn and prints the answer; PROMPT - reads it from stdin. Without PROMPT it is
        a conversation; /help lists its commands.

        Each session has one agent, which is itself a process of holdfast (holdfast ps --session agents): it goes on
        when this command ends, is restarted after a crash, and is notified of its background processes. A new message
        interrupts what it does. The same session from two terminals is the same conversation.

        Endpoint, model and key come from the options, OPENAI_BASE_URL, HOLDFAST_MODEL and OPENAI_API_KEY, or from
        agent/config.toml in the home, which --setup writes. Commands that need approval are asked for here.

        With --acp another program is the agent of a new session: claude-code, codex, one of agent/config.toml, or any
        command that speaks the Agent Client Protocol. It gets the tools of holdfast, and the session's notifications
        as messages. A session keeps its agent.

        With --json: an object a line; type is message, tool_call, tool_result, notice or end. agent log prints the
        conversation from the disk; without SESSION it lists the sessions that have one.
    """,
    options=[
        Option("--session", metavar="S", help="The session. Default: $HOLDFAST_SESSION, else a new one."),
        Option("--resume", help="Without --session: the session that was used last."),
        Option("--model", metavar="M", help="The model, from now on in this session."),
        Option("--base-url", metavar="URL", help="The endpoint, from now on in this session."),
        Option(
            "--acp", metavar="NAME|COMMAND", help="The program that is the agent: claude-code, codex, or a command."
        ),
        Option("--toolset", metavar="T", help="The tools: default, terminal, read-only, or as configured."),
        Option("--format", choices=_FORMATS, help="Of agent log. Default: jsonl, or markdown on a terminal."),
        Option("--quiet", help="Print the last answer only."),
        Option("--setup", help="Choose the endpoint, the key and the model."),
        JSON,
    ],
    exits=[
        ("0", "The turn is done, or the conversation was left."),
        ("125", "The model could not be asked, or the turn was given up; the message says why."),
        ("130", "Interrupted."),
    ],
    examples=[
        ("One task", "holdfast agent 'fix the failing tests'"),
        ("A conversation, with a local model", "holdfast agent --base-url http://localhost:11434/v1 --model qwen3"),
        ("Claude Code as the agent", "holdfast agent --acp claude-code"),
        ("Go on with the last one", "holdfast agent --resume"),
        ("Read a conversation", "holdfast agent log chat-42 --format markdown"),
    ],
)


def run(given: Given) -> int:
    if given.words[:1] == ["log"] and len(given.words) <= 2:
        return _log(given)
    if given.format is not None:
        raise BadValue("--format is for agent log", next=given.usage)
    from importlib.util import find_spec

    for name in ("prompt_toolkit",) if given.acp else ("openai", "prompt_toolkit"):
        if find_spec(name) is None:
            from holdfast.extras import install_hint

            raise HoldfastError(f"the package {name} is not installed", next=install_hint("agent"))
    if os.environ.get("HOLDFAST_URL"):
        raise BadValue("agents run on the machine of the daemon", next="unset HOLDFAST_URL, or use holdfast there")
    is_terminal = os.isatty(0) and os.isatty(2)
    if given.setup:
        if not is_terminal:
            raise BadValue("--setup needs a terminal", next="set OPENAI_BASE_URL, OPENAI_API_KEY and HOLDFAST_MODEL")
        return _setup()
    prompt = _prompt(given)
    _check_configured(given, is_terminal)
    import asyncio

    from holdfast.cli.terminal import agent_chat

    session = _session(given)
    settings = {name: getattr(given, name) for name in ("model", "base_url", "toolset") if getattr(given, name)}
    if prompt is None:
        return asyncio.run(agent_chat.converse(session, settings, given.acp))
    mode: Mode = "json" if given.json else "quiet" if given.quiet else "text"
    return asyncio.run(agent_chat.one_turn(session, settings, prompt, mode, given.acp))


def _prompt(given: Given) -> str | None:
    """The prompt; None for a conversation."""
    prompt = " ".join(given.words)
    if prompt == "-" or (not prompt and not os.isatty(0)):
        prompt = sys.stdin.read() if sys.stdin is not None else ""
        if not prompt.strip():
            raise BadValue("there is no prompt on stdin", next="holdfast agent PROMPT")
        return prompt
    if given.words and not prompt.strip():
        raise BadValue("the prompt is empty", next="holdfast agent PROMPT")
    if not prompt and (given.json or given.quiet):
        raise BadValue("--json and --quiet need a prompt", next="holdfast agent PROMPT --json")
    if not prompt and not os.isatty(1):
        raise BadValue("a conversation needs a terminal", next="holdfast agent PROMPT")
    return prompt or None


def _check_configured(given: Given, is_terminal: bool) -> None:
    """Raises HoldfastError where no model is known; on a terminal the user is asked first."""
    from holdfast.agent.config import find_acp, read_config
    from holdfast.paths import find_paths

    config = read_config(find_paths().home)
    if given.acp is not None:
        if given.model or given.base_url or given.toolset:
            raise BadValue("--acp has a model and tools of its own", next="leave --model, --base-url and --toolset out")
        find_acp(config, given.acp)
        return
    config.tools_of(given.toolset or config.toolset)
    if given.model or config.model or given.session or given.resume:
        return  # a session that goes on has a model
    if not is_terminal:
        what = "no model is configured"
        raise HoldfastError(what, next="holdfast agent --setup, or set OPENAI_BASE_URL, OPENAI_API_KEY, HOLDFAST_MODEL")
    if _setup():
        raise HoldfastError("no model is configured", next="holdfast agent --setup")


def _setup() -> int:
    from holdfast.cli.terminal import agent_setup

    return agent_setup.run()


def _session(given: Given) -> str:
    from holdfast import session_log
    from holdfast.paths import find_paths

    named = given.session or os.environ.get("HOLDFAST_SESSION")
    if named:
        session_log.path_of("/", named)  # raises BadValue for an invalid name
        return str(named)
    if given.resume:
        found = session_log.sessions(find_paths().home)
        if not found:
            raise NotFound("there is no conversation to go on with", next="holdfast agent")
        return found[0].session
    import time

    return f"agent-{time.strftime('%m%d-%H%M')}-{os.urandom(2).hex()}"


def _log(given: Given) -> int:
    import json

    from holdfast import session_log
    from holdfast.agent import exports
    from holdfast.paths import find_paths

    home = find_paths().home
    if len(given.words) == 1 and given.session is None:
        return _list(given, session_log.sessions(home))
    session = given.words[1] if len(given.words) == 2 else given.session
    path = session_log.path_of(home, session)
    entries = session_log.read(path)
    chosen = given.format or ("markdown" if os.isatty(1) and not given.json else "jsonl")
    branch = session_log.branch(entries)
    if chosen == "jsonl":
        for entry in entries:
            console.out(json.dumps(entry.to_json(), ensure_ascii=False))
    elif chosen == "openai":
        console.out(exports.openai(branch))
    elif chosen == "markdown":
        text = exports.markdown(branch, session).rstrip("\n")
        console.out(console.visible_lines(text) if os.isatty(1) else text)
    else:
        console.out(json.dumps(exports.atif(branch, session), ensure_ascii=False, indent=1))
    return 0


def _list(given: Given, sessions: list[LoggedSession]) -> int:
    import time

    from holdfast.model.units import duration_text
    from holdfast.paths import find_paths
    from holdfast.session_log import is_held

    home = find_paths().home
    if given.json:
        fields = [{**one._asdict(), "agent_runs": is_held(home, one.session)} for one in sessions]
        console.out_json(fields)
        return 0
    if not sessions:
        console.say("no conversations yet")
        return 0
    rows = [
        (
            one.session,
            "runs" if is_held(home, one.session) else "-",
            f"{duration_text(time.time() - one.changed_at)} ago",
        )
        for one in sessions
    ]
    console.out(console.table(("SESSION", "AGENT", "CHANGED"), rows))
    return 0
