"""The connection of the tools: bound to its session, judged at the gate, with secrets masked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from holdfast.client.aio import AsyncClient
from holdfast.client.process import Process
from holdfast.errors import BadValue, NotFound


def open_client(session: str, home: str | os.PathLike[str] | None, url: str | None, token: str | None) -> AsyncClient:
    return AsyncClient(session, home=home, url=url, token=token, strict=True)


async def start(client: AsyncClient, command: str, options: Mapping[str, Any]) -> Process:
    """A start that is judged first, in an environment without secrets."""
    wanted: Any = {"gate": True, "clean": True, **options}
    return await client.run(command, **{key: value for key, value in wanted.items() if value is not None})


async def masked(client: AsyncClient, texts: list[str]) -> list[str]:
    """The texts with secrets masked."""
    return list(await client.redact(*texts)) if any(texts) else texts


async def find(client: AsyncClient, text: str) -> Process:
    """The process of this session that an id, a prefix or a name stands for. Raises NotFound for any other."""
    for spelling in _spellings(text):
        try:
            return await client.inspect(spelling)
        except (NotFound, BadValue):
            continue
    raise NotFound(f"no process {text[:80]}")


def _spellings(text: str) -> list[str]:
    """As it is; and for what was a number on its way here, as the digits of an id."""
    return [text, f"proc_{text}", f"proc_{text:0>12}"] if text.isdigit() and len(text) <= 12 else [text]
