"""The output of a process, in a window of constant size; and its terminal, with what is typed into it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import holdfast
from holdfast.tui.processes.ansi_lines import coloured, line_text
from holdfast.tui.processes.log_view import LogView
from holdfast.tui.processes.log_window import MOST, LogWindow
from holdfast.tui.processes.terminal_keys import bytes_of
from tests.tui.stage import Stage, on_stage


def test_the_window_always_holds_a_part_of_the_log() -> None:
    window = LogWindow()
    window.set(1000, b"rest of a line\nfirst\nsecond", is_line_start=False)
    assert [line.data for line in window.lines] == [b"first\n", b"second"]
    assert window.first == 1015
    window.append(b" goes on\nthird\n")
    assert window.lines[-2].data == b"second goes on\n"
    for number in range(200):
        window.append(b"%d " % number + b"x" * 10_000 + b"\n")
        assert window.end - window.first <= MOST + 20_000
        assert window.first == window.lines[0].offset
    assert sum(len(line.data) for line in window.lines) == window.end - window.first
    assert all(window.lines[window.index_of(line.offset)] is line for line in window.lines)


def test_a_line_keeps_its_colours_and_nothing_else() -> None:
    text = line_text(b"\x1b[31mred\x1b[0m \x1b]0;title\x07plain\x1b[2J\x1b[10;10H\x07\n")
    assert text.plain == "red plain"
    assert next(str(span.style) for span in text.spans if span.end > span.start) == "color(1)"
    assert line_text(b"10%\r50%\r100%\n").plain.endswith("[3 updates]")
    assert "\x1b" not in coloured("a\x1b[31mb\x1b[0mc\x1b").plain


def test_keys_are_sent_as_a_terminal_sends_them() -> None:
    sent = {
        ("a", "a"): b"a",
        ("ö", "ö"): "ö".encode(),
        ("enter", "\r"): b"\r",
        ("escape", None): b"\x1b",
        ("ctrl+c", None): b"\x03",
        ("backspace", None): b"\x7f",
        ("up", None): b"\x1b[A",
        ("ctrl+left", None): b"\x1b[1;5D",
        ("delete", None): b"\x1b[3~",
        ("f5", None): b"\x1b[15~",
        ("alt+b", None): b"\x1bb",
        ("tab", "\t"): b"\t",
        ("shift+tab", None): b"\x1b[Z",
    }
    assert {key: bytes_of(*key, is_full_screen=False) for key in sent} == sent
    assert bytes_of("up", None, is_full_screen=True) == b"\x1bOA"
    assert bytes_of("media_play", None, is_full_screen=False) == b""


def test_output_is_followed_searched_on_the_server_and_read_from_any_byte(home: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    with holdfast.connect() as client:
        script = (
            "seq -f 'line %.0f of a long log that goes on and on' 300000; "
            f"until [ -e {go} ]; do sleep 0.05; done; echo the very end; sleep 1000"
        )
        process = client.run(script, name="long")
        client.wait(process, until="match", match="line 300000", after=0, timeout=60)

    async def act(ui: Stage) -> None:
        await ui.sees("long")
        await ui.press("l")
        await ui.sees("line 300000 of", "following")
        view = ui.app.screen.query_one(LogView)
        await ui.press("g")
        await ui.sees("line 1 of a", "byte 0")
        await ui.press("slash")
        await ui.type("line 15000[0-2] of\n")
        await ui.sees("1 of 3", "line 150000 of")
        await ui.press("n")
        await ui.sees("2 of 3")
        for _ in range(5):
            await ui.press("pageup")
        assert view.window.end - view.window.first <= MOST + (128 << 10)
        go.touch()
        await ui.sees("1 new line")
        assert "the very end" not in ui.text, "a view that was scrolled up stays where it is"
        await ui.press("G")
        await ui.sees("the very end", "following")

    on_stage(act)


def test_a_flood_is_followed_by_reading_what_a_screen_shows(home: Path) -> None:
    with holdfast.connect() as client:
        process = client.run("yes 'a line of the flood'; true", name="flood", log_cap=1 << 20).id

    async def act(ui: Stage) -> None:
        await ui.sees("flood")
        await ui.press("enter")
        await ui.sees("following")
        view = ui.app.screen.query_one(LogView)
        sizes: list[int] = []
        load = ui.app.feed.client.logs

        async def counted(*words: Any, **given: Any) -> Any:
            page = await load(*words, **given)
            sizes.append(len(page.data))
            return page

        ui.app.feed.client.logs = counted  # type: ignore[method-assign]
        seen = view.total
        await ui.until(lambda: len(sizes) > 6)
        assert max(sizes) <= 16 << 10, "however much is written"
        assert view.total > seen + sum(sizes), "the rest is skipped"
        with holdfast.connect() as client:
            client.kill(process)
        await ui.until(lambda: view.window.end == view.total)
        assert "a line of the flood" in ui.text

    on_stage(act)


def test_a_bad_pattern_says_so(home: Path) -> None:
    with holdfast.connect() as client:
        client.run("echo something; sleep 1000", name="p")

    async def act(ui: Stage) -> None:
        await ui.sees("● running")
        await ui.press("l")
        await ui.sees("something")
        await ui.press("slash")
        await ui.press("left_parenthesis", "enter")
        await ui.sees("missing )")

    on_stage(act)


def test_the_terminal_of_a_process_takes_keys_and_the_size_of_the_view(home: Path) -> None:
    with holdfast.connect() as client:
        client.run(["bash", "--norc"], name="shell", pty=True, env={"PS1": "$ "})

    async def act(ui: Stage) -> None:
        await ui.sees("shell")
        await ui.press("t")
        await ui.sees("you type into it", "80×21")
        await ui.type("stty size; echo $((20+3))x\n")
        await ui.sees("21 80", "23x")
        await ui.type("q?/xajk")
        await ui.sees("q?/xajk")
        await ui.press("ctrl+u")
        await ui.pilot.resize_terminal(100, 30)
        await ui.sees("100×27")
        await ui.press("ctrl+right_square_bracket")
        await ui.sees("t types into it")
        await ui.press("escape")
        await ui.sees("all ●1")

    on_stage(act)


def test_no_key_is_taken_from_a_terminal_but_the_one_that_leaves(home: Path) -> None:
    with holdfast.connect() as client:
        client.run(["cat", "-v"], name="echoes", pty=True)

    async def act(ui: Stage) -> None:
        await ui.sees("echoes")
        await ui.press("t")
        await ui.sees("you type into it")
        await ui.press("ctrl+n", "ctrl+k", "ctrl+o", "f1", "escape", "tab", "x", "enter")
        await ui.sees("^N^K", "^[OP")
        assert "you type into it" in ui.text

    on_stage(act)


def test_a_process_without_a_terminal_says_what_to_do_instead(home: Path) -> None:
    with holdfast.connect() as client:
        client.run("sleep 1000", name="plain")

    async def act(ui: Stage) -> None:
        await ui.sees("plain")
        await ui.press("t")
        await ui.sees("has no terminal")

    on_stage(act)


def test_details_say_why_it_ended(home: Path) -> None:
    with holdfast.connect() as client:
        client.run("echo boom: no such file >&2; exit 2", name="broken")

    async def act(ui: Stage) -> None:
        await ui.sees("✗ exit 2")
        await ui.press("d")
        await ui.sees("exit code 2", "boom: no such file", "proc_")

    on_stage(act)


def test_a_hit_far_in_a_long_line_is_brought_into_view(home: Path) -> None:
    with holdfast.connect() as client:
        # The head of the page shows as much of the command as fits: it must not have the word.
        client.wait(client.run("printf 'begin%03000d nee\\144le and its end\\n' 0", name="wide").id)

    async def act(ui: Stage) -> None:
        await ui.sees("wide")
        await ui.press("l")
        await ui.sees("begin000")
        assert "needle" not in ui.text
        await ui.press("slash")
        await ui.type("needle\n")
        await ui.sees("needle and its end", "1 of 1")
        for _ in range(100):
            await ui.press("left")
        await ui.sees("begin000")

    on_stage(act)
