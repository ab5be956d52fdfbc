"""Boxes to write in. What is typed fast has its effect in the order of the keys."""

from __future__ import annotations

from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, TextArea


async def act_at_once(box: Input | TextArea, event: events.Key) -> bool:
    """Do what a key like Backspace is bound to; whether it is bound to something.

    Textual looks for bindings only when no widget took the key. Until then the letter behind it may be in the box, and
    Backspace would remove that one.
    """
    for binding in box._bindings.key_to_bindings.get(event.key, ()):
        if await box.app.run_action(binding.action, box):
            event.stop()
            event.prevent_default()
            return True
    return False


class LineBox(Input):
    """One line of text. Its size never depends on it: what is typed needs no new layout, which is most of a frame.

    `behind` has the focus from Enter on: keys that were typed fast behind it are keys of that widget.
    """

    DEFAULT_CSS = """
    LineBox, LineBox:focus { height: 1; border: none; padding: 0 1; }
    """

    behind: Widget | None = None
    _is_over = False

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> LineBox:
        return super().refresh(*regions, repaint=repaint, recompose=recompose)

    async def _on_key(self, event: events.Key) -> None:
        if self._is_over:
            event.stop()
            event.prevent_default()
            await self.app.press_in_list(event.key)  # type: ignore[attr-defined]
            return
        if event.is_printable or not await act_at_once(self, event):
            await super()._on_key(event)
        if event.key == "enter" and self.behind is not None:
            self._is_over = True
            self.screen.set_focus(self.behind)


class MessageBox(TextArea):
    """Enter sends; ctrl-J begins a new line."""

    class MessageEntered(Message):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class InterruptAsked(Message):
        pass

    _coloured_for = ("", False)

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Only the cursor shows the focus: to find the styles anew takes a quarter of a switch between sessions."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """Textual finds the colours of the text anew for each frame of the screen; they change with the theme alone."""
        wanted = (self.app.theme, self.has_focus)
        if wanted != self._coloured_for:
            self._coloured_for = wanted
            return super().render_lines(crop)
        return super(TextArea, self).render_lines(crop)

    async def _on_key(self, event: events.Key) -> None:
        own = {
            "enter": self.submit,
            "ctrl+j": self.begin_line,
            "shift+enter": self.begin_line,
            "ctrl+c": self.interrupt,
        }
        if event.key in own:
            event.stop()
            event.prevent_default()
            own[event.key]()
        elif event.is_printable or not await act_at_once(self, event):
            await super()._on_key(event)

    def submit(self) -> None:
        if self.text.strip():
            self.post_message(self.MessageEntered(self.text))
            self.text = ""

    def begin_line(self) -> None:
        self.insert("\n")

    def interrupt(self) -> None:
        if self.selected_text:
            self.app.copy_to_clipboard(self.selected_text)
        else:
            self.post_message(self.InterruptAsked())
