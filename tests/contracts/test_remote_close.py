"""The connection to a relay is closed once, however often that is requested."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from tests.contracts.staged import RelayedPlace, StagedPlace


def test_closing_twice_closes_no_descriptor_of_others(tmp_path: Path) -> None:
    staged = StagedPlace(RelayedPlace, tmp_path)
    try:
        peer = staged.run(staged.place.link.open())  # type: ignore[attr-defined]

        async def close_twice() -> None:
            await asyncio.gather(peer.close(), peer.close())

        staged.run(close_twice())
        others = [os.open("/", os.O_PATH) for _ in range(64)]
        staged.run(peer.close())
        for fd in others:
            os.close(fd)
    finally:
        staged.close()
