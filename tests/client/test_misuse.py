"""Calls that cannot be meant, and a client that is closed: said at once, in our own errors."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import holdfast


@pytest.mark.parametrize("timeout", [float("nan"), -1, -0.1, float("-inf"), "a", b"1", [], True])
def test_a_timeout_is_a_number_from_0_on(instance: Path, timeout: Any) -> None:
    with holdfast.connect() as client:
        process = client.run(["sleep", "60"])
        with pytest.raises(holdfast.BadValue, match="a timeout is a number of seconds"):
            client.wait(process, timeout=timeout)
        with pytest.raises(holdfast.BadValue, match="a timeout is a number of seconds"):
            client.wait_for([process.id], timeout=timeout)
        assert client.wait(process, timeout=0).status == "running"
        client.kill(process)
        assert client.wait(process, timeout=float("inf")).status == "ended"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_are_finite(instance: Path, number: float) -> None:
    with holdfast.connect() as client:
        for option in ("cpus", "deadline", "stall"):
            with pytest.raises(holdfast.BadValue, match=f"{option} must be a finite number, not {number}"):
                client.run("true", **{option: number})  # type: ignore[arg-type]


def test_a_refusal_names_the_parameter_of_the_call(instance: Path) -> None:
    """And not the field of the request."""
    anything: Any = {"A": 5}
    with holdfast.connect() as client:
        for call, named in (
            (lambda: client.run("true", env=anything), "env"),
            (lambda: client.run("true", env={"A=B": "c"}), "env"),
            (lambda: client.rename_session("\n", "x"), "old"),
            (lambda: client.rename_session("x", "\n"), "new"),
            (lambda: client.logs("x", offset=-1), "offset"),
            (lambda: client.search("x", "y", offset=-1), "offset"),
            (lambda: client.ack(anything), "notifications"),
        ):
            with pytest.raises(holdfast.BadValue, match=f"^{named} "):
                call()

    async def use() -> None:
        async with holdfast.aconnect() as client:
            with pytest.raises(holdfast.BadValue, match=r"^old "):
                await client.rename_session("\n", "x")

    asyncio.run(use())


def test_a_closed_client_says_so(instance: Path) -> None:
    with holdfast.connect() as client:
        process = client.run(["true"])
    for use in (client.ps, client.status, lambda: client.wait(process), lambda: list(client.follow(process))):
        with pytest.raises(holdfast.HoldfastError, match="this client is closed") as refused:
            use()
        assert "holdfast.connect()" in refused.value.next
    client.close()


def test_a_closed_async_client_says_so(instance: Path) -> None:
    async def use() -> None:
        async with holdfast.aconnect() as client:
            process = await client.run(["true"])
        with pytest.raises(holdfast.HoldfastError, match="this client is closed"):
            await client.ps()
        with pytest.raises(holdfast.HoldfastError, match="this client is closed"):
            client.follow(process)
        await client.close()

    asyncio.run(use())


def test_wrong_types_are_refused_before_anything_is_sent(instance: Path) -> None:
    anything: Any
    with holdfast.connect() as client:
        process = client.run(["cat"], stdin=True)
        for anything in (5, None, 1.5):
            with pytest.raises(holdfast.BadValue, match="input is a str or bytes"):
                client.send(process, anything)
            with pytest.raises(holdfast.BadValue):
                client.wait(anything)
        for call in (
            lambda: client.kill(process, signal=1.5),  # type: ignore[arg-type]
            lambda: client.inbox(wait="5"),  # type: ignore[arg-type]
            lambda: client.run(["true"], cwd=1),  # type: ignore[arg-type]
            lambda: client.run(["true"], session=""),
            lambda: holdfast.connect(session=""),
        ):
            with pytest.raises(holdfast.BadValue) as refused:
                call()
            assert "VERB" not in refused.value.next
        assert client.logs(process).data == b""


def test_a_notification_that_cannot_exist_is_unknown(instance: Path) -> None:
    with holdfast.connect() as client:
        assert client.ack("\udcff", "note_000000000000")["unknown"] == ["note_000000000000", "\udcff"]
        assert client.ack("\udcff")["unknown"] == ["\udcff"]  # and the store has nothing left to write
