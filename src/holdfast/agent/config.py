"""The configuration of agents: `agent/config.toml` in the instance's home, and the environment.

The key of the endpoint is in a file of its own (mode 0600), in the environment, or printed by a command.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any, NamedTuple

from holdfast import files
from holdfast.errors import BadValue, HoldfastError

FILE_TOOLS = ("read", "write", "edit", "search")
BUILT_IN = ("terminal", "process", *FILE_TOOLS)
#: In a toolset: all tools of the configured MCP servers. `mcp:NAME` are those of one.
MCP_TOOLS = "mcp"
TOOLSETS: dict[str, tuple[str, ...]] = {
    "default": (*BUILT_IN, MCP_TOOLS),
    "terminal": ("terminal", "process"),
    "read-only": ("read", "search"),
}
#: Names of providers, and their endpoints.
PRESETS: dict[str, str] = {
    "OpenAI": "https://api.openai.com/v1",
    "OpenRouter": "https://openrouter.ai/api/v1",
    "Anthropic": "https://api.anthropic.com/v1",
    "Google Gemini": "https://generativelanguage.googleapis.com/v1beta/openai",
    "Mistral": "https://api.mistral.ai/v1",
    "DeepSeek": "https://api.deepseek.com/v1",
    "Groq": "https://api.groq.com/openai/v1",
    "Ollama, on this machine": "http://localhost:11434/v1",
    "llama.cpp, on this machine": "http://localhost:8080/v1",
}


class AcpPreset(NamedTuple):
    """A program that speaks ACP: what is run if it is installed, and else the package that npx runs."""

    program: str
    package: str
    login: str
    """How the user logs in."""
    keys: tuple[str, ...] = ()
    """With one of these in the environment, the program is asked to use it: login method `api-key`."""


ACP_PRESETS: dict[str, AcpPreset] = {
    "claude-code": AcpPreset(
        "claude-agent-acp",
        "@agentclientprotocol/claude-agent-acp",
        "run claude, then /login; or set ANTHROPIC_API_KEY (as root also IS_SANDBOX=1)",
    ),
    "codex": AcpPreset(
        "codex-acp",
        "@agentclientprotocol/codex-acp",
        "run codex login; or set OPENAI_API_KEY",
        ("CODEX_API_KEY", "OPENAI_API_KEY"),
    ),
}
_KEY_TIMEOUT = 30.0


class AgentConfig(NamedTuple):
    """What may be set in agent/config.toml, each with its default."""

    base_url: str = ""
    model: str = ""
    key_command: str = ""
    """Prints the key of the endpoint."""
    toolset: str = "default"
    toolsets: Mapping[str, tuple[str, ...]] = {}
    """Toolsets of the user's own: names of tools by name of the set."""
    mcp: Mapping[str, Mapping[str, Any]] = {}
    """MCP servers by name: `command` (a list of words) with `env`, or `url`."""
    acp: Mapping[str, Mapping[str, Any]] = {}
    """Programs that speak the Agent Client Protocol, by name: `command` (a list of words) with `env` and `auth`."""
    backend: str = ""
    """Where commands run and files are; empty for this machine."""
    image: str = ""
    host: str = ""
    instructions: str = ""
    """Added to the system prompt."""
    context_tokens: int = 128_000
    """What the model can read at once: a longer conversation is compacted."""
    max_steps: int = 200
    """How often the model is asked in one turn at most."""
    retries: int = 6
    retry_delay: float = 1.0
    """Seconds before the first retry; each further one waits twice as long, 30 at most."""
    request_timeout: float = 120.0
    """Seconds without a byte of the endpoint until a request is given up."""
    idle_exit: float = 1800.0
    """Seconds without work, and without a running process of its session, until an agent exits. 0: never."""
    price_input: float = 0.0
    price_cached: float = 0.0
    price_output: float = 0.0
    """Dollars for a million tokens. Endpoints that report the cost need no prices."""

    def tools_of(self, name: str) -> tuple[str, ...]:
        """The tools of a toolset. Raises BadValue."""
        known = {**TOOLSETS, **self.toolsets}
        if name not in known:
            raise BadValue(f"no toolset {name[:80]!r}", next=f"one of: {', '.join(known)}")
        return tuple(known[name])

    @property
    def start_options(self) -> dict[str, str]:
        """Options of every start: where commands run."""
        return {key: getattr(self, key) for key in ("backend", "image", "host") if getattr(self, key)}

    @property
    def place(self) -> str:
        """Where files are."""
        return self.backend or ("ssh" if self.host else "local")


def path_of(home: str) -> str:
    return os.path.join(home, "agent", "config.toml")


def key_path(home: str) -> str:
    return os.path.join(home, "agent", "key")


def read_config(home: str, environ: Mapping[str, str] | None = None) -> AgentConfig:
    """The file, with the endpoint and the model of the environment on top. Raises BadValue."""
    import tomllib

    path = path_of(home)
    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except FileNotFoundError:
        table = {}
    except (OSError, ValueError, RecursionError) as broken:
        raise BadValue(f"cannot read {path}: {broken}", next=f"correct or remove {path}") from broken
    env = os.environ if environ is None else environ
    values = {key: _checked(key, value, path) for key, value in table.items()}
    for key, name in (("base_url", "OPENAI_BASE_URL"), ("model", "HOLDFAST_MODEL")):
        if env.get(name):
            values[key] = env[name]
    return AgentConfig(**values)


def _checked(key: str, value: Any, path: str) -> Any:
    default = AgentConfig._field_defaults.get(key)
    if default is None:
        known = ", ".join(AgentConfig._fields)
        raise BadValue(f"unknown setting {key[:80]!r} in {path}", next=f"known: {known}")
    if key == "toolsets":
        if not isinstance(value, dict) or not all(_is_names(one) for one in value.values()):
            raise BadValue(f"toolsets in {path} must be lists of tools by name", next='write review = ["read"]')
        return {name: tuple(tools) for name, tools in value.items()}
    if key in ("mcp", "acp"):
        _check_programs(key, value, path)
        return value
    is_number = isinstance(default, (int, float))
    is_right = (
        isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
        if is_number
        else isinstance(value, str)
    )
    if not is_right:
        what = "a number from 0 on" if is_number else "a text"
        raise BadValue(f"{key} in {path} must be {what}", next=f"correct {path}")
    return type(default)(value)


def _check_programs(key: str, value: Any, path: str) -> None:
    """Raises BadValue."""
    if not isinstance(value, dict):
        raise BadValue(f"{key} in {path} must be tables", next=f"write [{key}.NAME]")
    for name, table in value.items():
        is_valid = isinstance(table, dict) and isinstance(table.get("env", {}), dict)
        has_command = is_valid and _is_names(table.get("command"))
        if key == "mcp":
            has_command = has_command or (is_valid and isinstance(table.get("url"), str))
        if not has_command or not name.replace("-", "").replace("_", "").isalnum():
            what = f"{key}.{name[:80]} in {path} needs a command (a list of words)"
            raise BadValue(f"{what} or a url" if key == "mcp" else what, next=f"correct {path}")


class AcpChoice(NamedTuple):
    """A program that speaks ACP. `auth` is the login method that it is asked to use, if it asks for one."""

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = {}
    auth: str = ""
    login: str = ""
    """How the user logs in, where that is known."""


def find_acp(config: AgentConfig, named: str) -> AcpChoice:
    """The program of this name, or with this command. Raises BadValue."""
    import shlex
    import shutil

    if (table := config.acp.get(named)) is not None:
        env = {str(key): str(value) for key, value in table.get("env", {}).items()}
        return AcpChoice(named, tuple(table["command"]), env, str(table.get("auth") or ""))
    if (preset := ACP_PRESETS.get(named)) is not None:
        auth = "api-key" if any(os.environ.get(key) for key in preset.keys) else ""
        if shutil.which(preset.program) is not None:
            return AcpChoice(named, (preset.program,), auth=auth, login=preset.login)
        if shutil.which("npx") is None:
            what = f"neither {preset.program} nor npx is installed"
            raise BadValue(what, next=f"install Node.js, then: npm install -g {preset.package}")
        return AcpChoice(named, ("npx", "--yes", preset.package), auth=auth, login=preset.login)
    try:
        words = shlex.split(named)
    except ValueError as bad:
        raise BadValue(f"--acp is no command: {bad}", next="quote it as for a shell") from None
    if not words or shutil.which(words[0]) is None:
        known = ", ".join([*config.acp, *(name for name in ACP_PRESETS if name not in config.acp)])
        raise BadValue(f"no agent program {named[:80]!r}", next=f"one of: {known}; or a command that speaks ACP")
    return AcpChoice(os.path.basename(words[0]), tuple(words))


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def write_config(home: str, changes: Mapping[str, str], key: str | None = None) -> None:
    """Set texts of the file, and keep the rest of it. The key gets a file of its own, for its owner alone."""
    path = path_of(home)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        lines = []
    top = next((at for at, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    kept = [line for line in lines[:top] if line.partition("=")[0].strip() not in changes]
    written = [f"{name} = {json.dumps(value)}" for name, value in changes.items()]
    files.replace(path, "\n".join([*kept, *written, *lines[top:], ""]).encode())
    if key is not None:
        files.replace(key_path(home), key.encode())


def find_key(config: AgentConfig, home: str, environ: Mapping[str, str] | None = None) -> str | None:
    """The key of the endpoint; None where there is none. Raises HoldfastError if its command fails."""
    env = os.environ if environ is None else environ
    if env.get("OPENAI_API_KEY"):
        return env["OPENAI_API_KEY"]
    if config.key_command:
        try:
            done = subprocess.run(
                config.key_command, shell=True, capture_output=True, text=True, timeout=_KEY_TIMEOUT, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            done = None
        if done is None or done.returncode or not done.stdout.strip():
            raise HoldfastError("key_command printed no key", next=f"correct it in {path_of(home)}")
        return done.stdout.strip()
    try:
        with open(key_path(home), encoding="utf-8") as file:
            return file.read().strip() or None
    except (OSError, UnicodeDecodeError):
        return None
