"""Keys that are typed fast have their effect in their order, also where the machine is busy."""

from __future__ import annotations

from pathlib import Path

from textual import events

import holdfast
from holdfast.tui.widgets.dialogs import ConfirmDialog
from holdfast.tui.widgets.text_boxes import LineBox
from tests.tui.stage import Stage, on_stage

_NAMES = {"\x7f": "backspace", "/": "slash", "\r": "enter"}


def type_ahead(stage: Stage, text: str) -> None:
    """All keys are there before the first one has its effect."""
    for character in text:
        printable = None if character == "\x7f" else character
        stage.app.post_message(events.Key(_NAMES.get(character, character), printable))


def test_backspace_removes_the_letter_before_it(instance: Path) -> None:
    async def act(stage: Stage) -> None:
        await stage.sessions_show("chat")
        type_ahead(stage, "x\x7f" * 20 + "aby\x7fc")
        box = stage.app.sessions.views["chat"].box
        await stage.until(lambda: box.text == "abc")

    on_stage(act)


def test_backspace_in_a_filter_removes_the_letter_before_it(instance: Path) -> None:
    async def act(stage: Stage) -> None:
        await stage.press("slash")
        type_ahead(stage, "x\x7f" * 20 + "aby\x7fc")
        await stage.until(lambda: stage.app.screen.query_one(LineBox).value == "abc")

    on_stage(act)


def test_letters_behind_the_key_that_opens_the_filter_are_written_into_it(instance: Path) -> None:
    """They are no keys of the list: x would ask whether to end the process."""
    with holdfast.connect(session="chat") as client:
        client.run("sleep 1000", name="xylophone")

    async def act(stage: Stage) -> None:
        await stage.sees("xylophone")
        type_ahead(stage, "/xyl")
        await stage.until(lambda: [box.value for box in stage.app.screen.query(LineBox)] == ["xyl"])
        assert not isinstance(stage.app.screen, ConfirmDialog)

    on_stage(act)


def test_keys_behind_the_enter_that_leaves_the_filter_are_keys_of_the_list(instance: Path) -> None:
    with holdfast.connect(session="chat") as client:
        client.run("echo low; sleep 1000", name="zither")

    async def act(stage: Stage) -> None:
        await stage.sees("zither")
        type_ahead(stage, "/zit\rl")
        await stage.sees("following", "low")
        assert not stage.app.screen_stack[0].query(LineBox)

    on_stage(act)


def test_what_moves_by_itself_is_drawn_less_often_while_the_user_types(instance: Path) -> None:
    async def act(stage: Stage) -> None:
        assert stage.app.pause(0.05) == 0.05
        await stage.sessions_show("chat")
        type_ahead(stage, "hi")
        await stage.until(lambda: stage.app.pause(0.05) > 0.2)
        await stage.until(lambda: stage.app.pause(0.05) == 0.05)

    on_stage(act)


def test_the_end_of_a_long_line_is_in_view_and_no_key_makes_a_new_layout(instance: Path) -> None:
    async def act(stage: Stage) -> None:
        await stage.press("slash")
        await stage.press("a")
        await stage.sees("/a (")
        layouts: list[object] = []
        box = stage.app.screen.query_one(LineBox)
        stage.app.screen.screen_layout_refresh_signal.subscribe(box, layouts.append)
        type_ahead(stage, "b" * 150 + "theend")
        await stage.until(lambda: box.value.endswith("theend"))
        await stage.until(lambda: stage.lines[-3].endswith("theend"))
        assert not layouts

    on_stage(act)
