"""Logs and screens as resources, and being told that they changed."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import types
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated

from tests.mcp.host import NEW, OLD, Host, http, stdio

_CANARY = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"


async def text(host: Host, uri: str) -> str:
    (content,) = (await host.client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    return content.text


def test_logs_and_screens_are_read(instance: Path) -> None:
    async def use() -> None:
        async with http() as host, http() as stranger:
            id = await host.background(f"echo shown; echo {_CANARY}; sleep 300", pty=True)
            await host.process("wait", session_id=id, data="match:ghp")
            found = {resource.uri: resource for resource in (await host.client.list_resources()).resources}
            log, screen = f"holdfast://process/{id}/log", f"holdfast://process/{id}/screen"
            assert set(found) == {log, screen}
            assert _CANARY not in str(found[log].title)
            for uri in (log, screen):
                shown = await text(host, uri)
                assert "shown" in shown and _CANARY not in shown
            templates = (await host.client.list_resource_templates()).resource_templates
            assert [template.uri_template for template in templates] == [
                "holdfast://process/{id}/log{?session}",
                "holdfast://process/{id}/screen{?session}",
            ]
            assert (await stranger.client.list_resources()).resources == []
            for uri in (
                log,
                f"{log}?session=default",
                "holdfast://process/nope/log",
                "holdfast://x",
                "file:///etc/passwd",
            ):
                with pytest.raises(MCPError):
                    await stranger.client.read_resource(uri)
                with pytest.raises(MCPError):
                    await stranger.client.session.send_request(
                        types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri)), types.EmptyResult
                    )
            assert "shown" in await text(stranger, f"{log}?session={host.session}")
            await host.process("kill", session_id=id)

    asyncio.run(use())


class Ear:
    """What a client is told."""

    def __init__(self) -> None:
        self.updates: list[tuple[float, str]] = []
        self.lists = 0

    async def __call__(self, message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            self.updates.append((time.monotonic(), str(message.params.uri)))
        elif isinstance(message, types.ResourceListChangedNotification):
            self.lists += 1

    def heard(self, event: object) -> None:
        if isinstance(event, ResourceUpdated):
            self.updates.append((time.monotonic(), event.uri))
        elif isinstance(event, ResourcesListChanged):
            self.lists += 1

    async def until(self, updates: int, lists: int) -> None:
        async with asyncio.timeout(60):
            while len(self.updates) < updates or self.lists < lists:  # noqa: ASYNC110 - what happens is outside
                await asyncio.sleep(0.02)


_TICKING = "read go; for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.2; done; read end"


async def tick(host: Host, ear: Ear, id: str, uri: str) -> None:
    """It writes eight lines in 1.6 s or more, and ends."""
    begun = time.monotonic()
    await host.process("submit", session_id=id, data="go")
    await ear.until(2, 0)
    await asyncio.sleep(1.2)
    before = len(ear.updates)
    # A second lies between two. The first one and the last one may be heard at any moment of theirs.
    assert before <= time.monotonic() - begun + 2, ear.updates
    await host.process("submit", session_id=id, data="end")
    await ear.until(before + 1, 1)
    assert {told for _, told in ear.updates} == {uri}


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("transport", [stdio, http])
def test_subscriptions(instance: Path, transport: Any) -> None:
    ear = Ear()

    async def use() -> None:
        async with transport(message_handler=ear, mode=OLD) as host:
            assert host.client.server_capabilities.resources.subscribe is True
            id = await host.background(_TICKING)
            uri = f"holdfast://process/{id}/log"
            await host.client.subscribe_resource(uri)
            await tick(host, ear, id, uri)
            other = await host.background("read a; echo; read b")
            uri = f"holdfast://process/{other}/log"
            await host.client.subscribe_resource(uri)
            await host.client.unsubscribe_resource(uri)
            ear.updates.clear()
            await host.process("submit", session_id=other, data="a")
            await asyncio.sleep(0.5)
            assert ear.updates == []

    asyncio.run(use())


def test_subscriptions_of_the_newest_protocol(instance: Path) -> None:
    ear = Ear()

    async def use() -> None:
        async with stdio(mode=NEW) as host:
            id = await host.background(_TICKING)
            uri = f"holdfast://process/{id}/log"
            async with host.client.listen(resource_subscriptions=[uri], resources_list_changed=True) as events:

                async def hear() -> None:
                    async for event in events:
                        ear.heard(event)

                hearing = asyncio.create_task(hear())
                await tick(host, ear, id, uri)
                hearing.cancel()

    asyncio.run(use())
