"""Sessions of agents: a conversation each, in view or not; what belongs to one appears there and nowhere else."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import holdfast
from tests.agent.endpoint import Endpoint, Say, call
from tests.agent.stage import Conversation, configure
from tests.tui.stage import Stage, on_stage

ACP_PROGRAM = str(Path(__file__).parents[1] / "agent/acp_program.py")


def _job(go: Path, code: int = 0) -> Say:
    command = f"until [ -e {go} ]; do sleep 0.05; done; echo from-the-job; exit {code}"
    return call("terminal", command=command, background=True, notify_on_complete=True)


_ENDED = "failed (exit code 7)"


def test_the_end_of_a_process_of_a_is_shown_in_a_alone_while_b_is_in_view(
    home: Path, endpoint: Endpoint, tmp_path: Path
) -> None:
    a, b = Conversation(home, "A"), Conversation(home, "B")
    b.set(model="b")
    endpoint.script(_job(tmp_path / "go", 7), Say("it **runs** now"), Say("I saw that it failed"))
    endpoint.script(Say("hello from B"), Say("nothing happened here"), model="b")

    async def act(ui: Stage) -> None:
        await ui.sees(" B ")
        await ui.press("ctrl+n")
        await ui.sees("A name for the new session")
        await ui.type("A\n")
        await ui.sees("write to the agent")
        await ui.type("start it\n")
        await ui.sees("> start it", "▸ terminal", "it runs now", "idle", timeout=60)
        await ui.sees("● until")
        await ui.sessions_show("B")
        await ui.type("hi\n")
        await ui.sees("> hi", "hello from B", timeout=60)
        (tmp_path / "go").touch()
        await ui.until(lambda: len(a.of("end")) >= 2, timeout=60)
        assert _ENDED not in ui.text, "B does not show what belongs to A"
        await ui.type("and now?\n")
        await ui.sees("nothing happened here", timeout=60)
        assert _ENDED not in ui.text
        await ui.sessions_show("A")
        await ui.sees(_ENDED, "I saw that it failed")
        assert ui.text.count(_ENDED) == 1

    on_stage(act, size=(110, 30))
    assert len(a.of("notice")) == 1
    assert not b.of("notice")
    assert not any(_ENDED in json.dumps(body) for body in endpoint.asked_of("b"))


def test_a_ui_that_is_opened_after_the_end_shows_the_notice_in_its_session_once(
    home: Path, endpoint: Endpoint, tmp_path: Path
) -> None:
    a, b = Conversation(home, "A"), Conversation(home, "B")
    b.set(model="b")
    endpoint.script(_job(tmp_path / "go", 7), Say("it runs now"), Say("I saw that it failed"))
    endpoint.script(Say("hello from B"), model="b")

    async def before(ui: Stage) -> None:
        await ui.sessions_show("A")
        await ui.type("start it\n")
        await ui.sees("it runs now", timeout=60)
        await ui.sessions_show("B")
        await ui.type("hi\n")
        await ui.sees("hello from B", timeout=60)

    on_stage(before)
    with holdfast.connect() as client:
        assert len(client.ps(session="agents")) == 2, "closing the UI ends no agent"
    (tmp_path / "go").touch()
    a.ended(2)

    async def after(ui: Stage) -> None:
        await ui.sees(" A ", " B ")
        await ui.sessions_show("B")
        await ui.sees("> hi", "hello from B")
        assert _ENDED not in ui.text
        await ui.sessions_show("A")
        await ui.sees("> start it", "it runs now", _ENDED, "I saw that it failed")
        assert ui.text.count(_ENDED) == 1

    on_stage(after)
    assert len(a.of("notice")) == 1 and not b.of("notice")


def test_an_answer_is_shown_while_it_is_written_and_ctrl_c_interrupts(home: Path, endpoint: Endpoint) -> None:
    endpoint.script(Say("first " + "word " * 50 + "and the end", pause=1.0))

    async def act(ui: Stage) -> None:
        await ui.sessions_show("A")
        await ui.type("talk\n")
        await ui.sees("first word", "● working", timeout=60)
        assert "and the end" not in ui.text
        await ui.press("ctrl+c")
        await ui.sees("· interrupted", "idle")
        assert ui.text.count("first word") == 1, "the draft is replaced by what the log has"

    on_stage(act)


def test_tabs_show_what_sessions_out_of_view_do(home: Path, endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.script(call("terminal", command=f"until [ -e {tmp_path}/go ]; do sleep 0.05; done"), Say("waited"))

    async def act(ui: Stage) -> None:
        await ui.sessions_show("A")
        await ui.type("wait\n")
        await ui.sees("A ● working", "working · terminal", timeout=60)
        await ui.press("escape", "escape")
        await ui.sees("enter open")
        assert "A ● working" in ui.lines[0]
        await ui.press("ctrl+o")
        await ui.sees("Sessions", "● working", "terminal")
        await ui.press("escape")
        (tmp_path / "go").touch()
        await ui.until(lambda: "A ○" in ui.lines[0])

    on_stage(act)


def test_without_a_model_a_message_says_how_to_set_one_up(home: Path) -> None:
    async def act(ui: Stage) -> None:
        await ui.sees("no process yet")
        await ui.sessions_show("A")
        await ui.type("hello\n")
        await ui.sees("no model is configured", "--setup", timeout=60)

    on_stage(act)


def test_a_session_whose_agent_is_another_program(home: Path, endpoint: Endpoint, tmp_path: Path) -> None:
    program = [sys.executable, ACP_PROGRAM, str(tmp_path)]
    configure(home, endpoint, acp={"mine": {"command": program}})

    async def act(ui: Stage) -> None:
        await ui.sees("no process yet")
        await ui.press("ctrl+n")
        await ui.sees("● a model (holdfast)", "○ mine", "○ claude-code", "○ codex")
        await ui.press("down")
        await ui.sees("● mine")
        await ui.press(*["backspace"] * 20)
        await ui.type("P\n")
        await ui.sees("P · mine · no agent yet", "write to the agent")
        await ui.type("call make\n")
        await ui.sees("> call make", "▸ execute  make", "read 1 lines", "P · mine · idle", timeout=60)
        await ui.press("escape", "o")
        await ui.sees("result of make")

    on_stage(act, size=(110, 30))


def test_an_answer_that_is_begun_anew_is_drawn_without_what_it_had(home: Path, endpoint: Endpoint) -> None:
    Conversation(home, "A").say("hello")

    async def act(ui: Stage) -> None:
        await ui.sessions_show("A")
        await ui.sees("> hello")
        view = ui.app.sessions.views["A"]
        delta = {"type": "tui.message.delta", "session": "A", "entry": 1000, "text": "a lost answer\n\n" * 30}
        view.take(delta)
        await ui.sees("a lost answer")
        view.take({"type": "tui.error", "session": "A", "entry": 1000, "retry_in": 1, "message": "cut off"})
        view.transcript.refresh()  # before the new state is laid out
        await ui.until(lambda: "a lost answer" not in ui.text)
        await ui.sees("> hello", "asks again in 1 s")

    on_stage(act)


def test_two_sessions_side_by_side(home: Path, endpoint: Endpoint) -> None:
    endpoint.always(lambda body: Say("an answer"))
    Conversation(home, "A").say("to A")
    Conversation(home, "B").say("to B")

    async def act(ui: Stage) -> None:
        await ui.sees(" A ", " B ")
        await ui.sessions_show("A")
        await ui.sees("> to A")
        await ui.press("escape", "vertical_line")
        await ui.sees("> to A", "> to B")
        await ui.press("escape", "vertical_line")
        await ui.until(lambda: "> to B" not in ui.text and "> to A" in ui.text)

    on_stage(act)


def test_a_damaged_log_and_hostile_text_are_shown_as_text(home: Path, endpoint: Endpoint) -> None:
    endpoint.script(Say("a \x1b[2J\x07 [bold]not markup[/] \u202e end"))
    talk = Conversation(home, "A")
    talk.say("[red]x[/] \x1b]0;t\x07")
    with open(talk.path, "ab") as file:
        file.write(b'garbage \xff\n{"id": 99')

    async def act(ui: Stage) -> None:
        await ui.sessions_show("A")
        await ui.sees("[bold]not markup[/]", "[red]x[/]")
        assert all(line.isprintable() for line in ui.lines)

    on_stage(act)


def test_an_unfolded_call_shows_the_whole_command_and_what_it_printed(home: Path, endpoint: Endpoint) -> None:
    command = "for word in one two three four five six; do echo $word of the lines; done; exit 3"
    endpoint.script(call("terminal", command=command), Say("# Done\n\nas asked"), Say(""))
    talk = Conversation(home, "A")
    talk.say("count")
    talk.say("say nothing")

    async def act(ui: Stage) -> None:
        await ui.sessions_show("A")
        await ui.sees("▸ terminal", "the model answered nothing", "idle · 330 tokens")
        assert ui.line("Done").index("Done") < 10, "headings are on the left"
        await ui.press("escape", "o")
        await ui.sees("▾ terminal", "exit 3", "│ six of the lines", "│ exit_code: 3")
        assert "is_error" not in ui.text

    on_stage(act, size=(100, 40))


def test_a_dialog_leaves_the_session_below_as_it_was(home: Path, endpoint: Endpoint) -> None:
    Conversation(home, "A").say("hello")

    async def act(ui: Stage) -> None:
        await ui.sessions_show("A")
        await ui.sees("> hello", "idle")
        before = ui.lines[-3:]
        await ui.press("ctrl+n")
        await ui.sees("A name for the new session")
        await ui.press("escape")
        await ui.until(lambda: "A name" not in ui.text)
        assert ui.lines[-3:] == before

    on_stage(act)


def test_a_terminal_of_five_lines(home: Path, endpoint: Endpoint) -> None:
    endpoint.script(Say("a small answer"))

    async def act(ui: Stage) -> None:
        await ui.press("ctrl+n")
        await ui.sees("A name for the new", "session")
        await ui.type("\n")
        await ui.sees("write to the agent")
        await ui.type("hello\n")
        await ui.sees("a small answer")
        await ui.press("escape", "question_mark")
        await ui.sees("move", "first, last")

    on_stage(act, size=(20, 5))
