"""The first run of `holdfast agent`: which endpoint, which key, which model."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.agent.config import PRESETS, find_key, path_of, read_config, write_config
from holdfast.cli import console
from holdfast.errors import HoldfastError
from holdfast.paths import find_paths, make_directories

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession  # an extra brings it: imported where it is used

_OTHER = "Another endpoint"
_MOST_MODELS = 40
_LIST_TIME = 10.0


def run() -> int:
    """Asks, and writes the configuration. 0 when it is written, 130 when the user left."""
    paths = find_paths()
    make_directories(paths)
    try:
        changes, key = _ask(paths.home)
    except (EOFError, KeyboardInterrupt):
        console.say("nothing was written")
        return 130
    write_config(paths.home, changes, key)
    console.say(f"written to {path_of(paths.home)}; change it there, or run holdfast agent --setup")
    return 0


def _ask(home: str) -> tuple[dict[str, str], str | None]:
    from prompt_toolkit import PromptSession

    provider = _choice("Where is the model?", [(name, name) for name in [*PRESETS, _OTHER]])
    prompt: PromptSession[str] = PromptSession()
    base_url = PRESETS.get(provider) or _needed(prompt, "URL of the endpoint (it ends with /v1 mostly): ")
    changes = {"base_url": base_url, "key_command": ""}
    how = _choice(
        "Where is its key?",
        [
            ("type", "I type it; it is stored in a file that only I can read"),
            ("command", "A command prints it, such as: pass show openai"),
            ("environment", "In the environment, as OPENAI_API_KEY"),
            ("none", "It needs none"),
        ],
        "none" if "localhost" in base_url else "type",
    )
    key = None
    if how == "type":
        key = prompt.prompt("Key (it is not shown): ", is_password=True).strip()
    elif how == "command":
        changes["key_command"] = _needed(prompt, "Command: ")
    models = _models(home, changes, key)
    if models:
        model = _choice("Which model?", [*((one, one) for one in models), ("", "Another one")])
    else:
        model = ""
    changes["model"] = model or _needed(prompt, "Model: ")
    return changes, key


def _choice(question: str, options: list[tuple[str, str]], default: str | None = None) -> str:
    """One of these, chosen with the arrow keys: the list is longer than there are digits for."""
    from prompt_toolkit.shortcuts.choice_input import ChoiceInput

    message = f"{question} (up and down choose, Enter takes it, ^C leaves)"
    return ChoiceInput(message=message, options=options, default=default, show_numbers=False).prompt()


def _needed(prompt: PromptSession[str], question: str) -> str:
    while not (typed := prompt.prompt(question, is_password=False).strip()):
        continue
    return typed


def _models(home: str, changes: dict[str, str], key: str | None) -> list[str]:
    """What the endpoint offers; empty where it does not say."""
    try:
        config = read_config(home, {})._replace(key_command=changes["key_command"])
        return asyncio.run(_listed(changes["base_url"], key or find_key(config, home)))
    except HoldfastError as failed:
        console.say_error(failed)
        return []


async def _listed(base_url: str, key: str | None) -> list[str]:
    import openai

    client = openai.AsyncOpenAI(base_url=base_url, api_key=key or "none", max_retries=0, timeout=_LIST_TIME)
    try:
        page = await client.models.list()
        names = sorted(str(one.id) for one in page.data)
    except Exception as failed:  # noqa: BLE001 - the client raises errors of several libraries
        console.say(f"the models cannot be listed: {' '.join(str(failed).split())[:200]}")
        return []
    finally:
        await client.close()
    return [name for name in names if name.isprintable()][:_MOST_MODELS]
