"""Following by cursor: every batch once and in order, until waiting says that nothing more comes."""

from __future__ import annotations

import asyncio

from holdfast.daemon.core.tasks import follow


def test_what_is_there_and_what_comes_is_read_once_and_in_order() -> None:
    async def main() -> list[str]:
        log, waits = list("abc"), iter(["d", "", "ef"])

        async def read(after: int) -> tuple[int, str] | None:
            return (after + 1, log[after]) if after < len(log) else None

        async def wait(after: int) -> bool:
            assert after == len(log), "it waits only when all was read"
            more = next(waits, None)
            log.extend(more or "")
            return more is not None

        return [batch async for batch in follow(1, read, wait)]

    assert asyncio.run(main()) == list("bcdef")
