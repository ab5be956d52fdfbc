"""Every tool and every action, as a model would use them; the same over every transport."""

from __future__ import annotations

from tests.mcp.host import Host


async def use_everything(host: Host) -> None:
    await _foreground(host)
    await _input(host)
    await _looking(host)
    await _news(host)


async def _foreground(host: Host) -> None:
    made = await host.terminal("cd / && echo out && exit 3")
    assert (made["status"], made["exit_code"], made["output"]) == ("ended", 3, "out\n")
    assert made["session"].startswith("mcp-")
    made = await host.terminal("pwd")
    assert made["output"] == "/\n" and "session" not in made


async def _input(host: Host) -> None:
    id = await host.background("read a; echo got $a; cat >/dev/null; echo closed")
    assert (await host.process("write", session_id=id, data="one "))["reason"] == "written"
    assert (await host.process("submit", session_id=id, data="two"))["reason"] == "written"
    made = await host.process("wait", session_id=id, data="match:got one two")
    assert made["reason"] == "matched", made
    assert (await host.process("close", session_id=id))["reason"] == "stdin_closed"
    made = await host.process("wait", session_id=id)
    assert (made["status"], made["exit_code"]) == ("ended", 0)
    assert (await host.process("restart", session_id=id))["reason"] == "restarted"
    assert (await host.process("signal", session_id=id, data="CONT"))["sent"] is not None
    assert (await host.process("kill", session_id=id))["status"] == "ended"


async def _looking(host: Host) -> None:
    id = await host.background("echo alpha; echo beta; sleep 300", pty=True)
    await host.process("wait", session_id=id, data="match:beta")
    assert (await host.process("list"))["processes"][0]["session_id"] == id
    assert "beta" in (await host.process("poll", session_id=id))["output"]
    assert (await host.process("poll", session_id=id))["status"] == "unchanged"
    assert (await host.process("log", session_id=id, offset=0, limit=1))["output"].splitlines() == ["alpha"]
    assert "alpha" in (await host.process("screen", session_id=id))["screen"]
    assert (await host.process("search", session_id=id, data="^al"))["matches"] == ["0: alpha"]
    assert (await host.process("resize", session_id=id, data="100x30"))["reason"] == "resized"
    assert (await host.process("transfer", session_id=id, data="elsewhere"))["owner"] == "elsewhere"
    assert (await host.process("poll", session_id=id))["status"] == "not_found"


async def _news(host: Host) -> None:
    made = await host.terminal("echo news", background=True, notify_on_complete=True)
    if "notices" not in made:  # it may have ended by then
        made = await host.process("inbox", timeout=20)
        assert made["reason"] == "news"
    assert "news" in made["notices"][0]
    assert "notices" not in await host.process("list")
    made = await host.process("ack", data="note_0123456789ab")
    assert made["unknown"] == ["note_0123456789ab"]
