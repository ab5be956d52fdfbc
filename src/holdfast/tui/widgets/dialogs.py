"""Questions to the user: yes or no, a line of text, an answer to a request for approval; and the list of keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from holdfast.client.results.approval import Approval
from holdfast.tui import paint
from holdfast.tui.widgets.text_boxes import LineBox

_CSS = """
{name} {{ align: center middle; background: $background 60%; }}
{name} > Vertical, {name} > VerticalScroll {{
    width: 76; max-width: 96%; height: auto; max-height: 90%; padding: 1 2; border: round $primary; background: $panel;
}}
{name} Static {{ width: 1fr; height: auto; }}
{name} .quiet {{ color: $foreground 70%; margin-top: 1; }}
{name}.-low > Vertical, {name}.-low > VerticalScroll {{ max-width: 100%; max-height: 100%; padding: 0; border: none; }}
{name}.-low .quiet {{ margin-top: 0; }}
"""


def lines(*texts: str) -> Content:
    """Texts of others as lines: nothing in them is markup."""
    return Content("\n".join(paint.clean(text) for text in texts))


class ConfirmDialog(ModalScreen[bool]):
    """Yes only by y; Enter and Esc are no."""

    CSS = _CSS.format(name="ConfirmDialog")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", show=False),
        Binding("n,escape,enter,q", "answer(False)", show=False),
    ]

    def __init__(self, question: str, *details: str) -> None:
        super().__init__()
        self._question = question
        self._details = details

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(lines(self._question, *self._details))
            yield Static("[@click=screen.answer(True)]y yes[/]   [@click=screen.answer(False)]n no[/]", classes="quiet")

    def action_answer(self, is_yes: bool) -> None:
        self.dismiss(is_yes)


class LineDialog(ModalScreen[str | None]):
    """One line of text; None where it was left with Esc."""

    CSS = _CSS.format(name="LineDialog")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    def __init__(self, question: str, *, is_secret: bool = False, value: str = "", hint: str = "") -> None:
        super().__init__()
        self._question = question
        self._is_secret = is_secret
        self._value = value
        self._hint = hint

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(lines(self._question))
            yield LineBox(self._value, password=self._is_secret)
            yield Static(lines(self._hint or "enter sends · esc leaves"), classes="quiet")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)

    def action_leave(self) -> None:
        self.dismiss(None)


class NewSession(NamedTuple):
    """`acp` is the program that is its agent; None for a model."""

    name: str
    acp: str | None


class NewSessionDialog(ModalScreen[NewSession | None]):
    """The name of a session, and its agent: a model, or one of these programs."""

    CSS = _CSS.format(name="NewSessionDialog")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("down,tab", "choose(1)", show=False, priority=True),
        Binding("up,shift+tab", "choose(-1)", show=False, priority=True),
    ]

    def __init__(self, name: str, programs: Sequence[str]) -> None:
        super().__init__()
        self._name = name
        self._agents: list[str | None] = [None, *programs]
        self._chosen = 0

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(lines("A name for the new session"))
            yield LineBox(self._name)
            yield Static(self._shown(), id="agents", classes="quiet")
            yield Static(lines("↑ ↓ choose the agent · enter opens · esc leaves"), classes="quiet")

    def _shown(self) -> Content:
        names = [paint.clean(name or "a model (holdfast)") for name in self._agents]
        rows = [
            (f"\n ● {name}", "bold $primary") if at == self._chosen else f"\n ○ {name}" for at, name in enumerate(names)
        ]
        return Content.assemble("Its agent", *rows)

    def action_choose(self, by: int) -> None:
        self._chosen = (self._chosen + by) % len(self._agents)
        self.query_one("#agents", Static).update(self._shown())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(NewSession(event.value.strip(), self._agents[self._chosen]))

    def action_leave(self) -> None:
        self.dismiss(None)


class Decision(NamedTuple):
    """`scope` is once, session, always or deny; a password answers sudo."""

    approval: Approval
    scope: str
    password: str | None = None


class ApprovalDialog(ModalScreen[Decision | None]):
    """One request for approval. Enter decides nothing, but for a password."""

    CSS = _CSS.format(name="ApprovalDialog")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "decide('once')", show=False),
        Binding("s", "decide('session')", show=False),
        Binding("w", "decide('always')", show=False),
        Binding("d,n", "decide('deny')", show=False),
        Binding("escape,q", "leave", show=False),
    ]

    def __init__(self, approval: Approval) -> None:
        super().__init__()
        self.approval = approval

    def compose(self) -> ComposeResult:
        one = self.approval
        with VerticalScroll():
            yield Static(
                lines(
                    f"{one.action}: {one.command}",
                    "",
                    f"session   {one.session}",
                    f"directory {one.cwd}",
                    f"why       {one.why}" + (f" ({one.rule})" if one.rule else ""),
                )
            )
            if one.action == "sudo":
                yield LineBox(password=True, placeholder="password")
                yield Static("enter sends the password, an empty one refuses · esc later", classes="quiet")
            else:
                yield Static(
                    "[@click=screen.decide('once')]o once[/]   [@click=screen.decide('session')]s this session[/]   "
                    "[@click=screen.decide('always')]w always[/]   [@click=screen.decide('deny')]d deny[/]   esc later",
                    classes="quiet",
                )

    def on_mount(self) -> None:
        for box in self.query(LineBox):
            self.set_focus(box)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        decided = Decision(self.approval, "once", event.value) if event.value else Decision(self.approval, "deny")
        self.dismiss(decided)

    def action_decide(self, scope: str) -> None:
        if self.approval.action != "sudo":  # letters are those of the password
            self.dismiss(Decision(self.approval, scope))

    def action_leave(self) -> None:
        self.dismiss(None)


class HelpDialog(ModalScreen[None]):
    """The keys."""

    CSS = _CSS.format(name="HelpDialog")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,enter", "leave", show=False)]

    def __init__(self, keys: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(lines(*(f"{key:<16}{what}" for key, what in self._keys)))

    def action_leave(self) -> None:
        self.dismiss(None)
