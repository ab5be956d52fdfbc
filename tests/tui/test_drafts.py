"""An answer that is being written: what is complete of it is laid out once."""

from __future__ import annotations

import pytest
from rich.console import Console

from holdfast.session_log import LogEntry
from holdfast.tui.sessions import transcript
from holdfast.tui.sessions.transcript import Drawn, draw_block
from holdfast.tui.sessions.transcript_blocks import ConversationBlocks

ANSWER = "# Result\n\nAll **tests** pass.\n\n- one\n- two\n\n```python\nfirst = 1\n\nsecond = 2\n```\n\nThe end."


def drawn(conversation: ConversationBlocks, console: Console) -> list[str]:
    lines: Drawn = [line for block in conversation.blocks for line in draw_block(block, 60, True, console)]
    return ["".join(one.text for one in line).rstrip() for line in lines]


@pytest.fixture
def laid_out(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were laid out as Markdown."""
    texts: list[str] = []
    markdown = transcript._markdown

    def counted(text: str, width: int, dark: bool, console: Console) -> Drawn:
        texts.append(text)
        return markdown(text, width, dark, console)

    monkeypatch.setattr(transcript, "_markdown", counted)
    transcript._paragraph.cache_clear()
    return texts


def test_a_draft_looks_as_the_answer_will(laid_out: list[str]) -> None:
    console = Console(width=60)
    draft = ConversationBlocks()
    draft.delta(5, ANSWER)
    as_draft = [line for line in drawn(draft, console) if line]
    draft.blocks[0].is_draft = False
    assert as_draft == [line for line in drawn(draft, console) if line]


def test_only_the_last_paragraph_is_laid_out_again(laid_out: list[str]) -> None:
    console = Console(width=60)
    conversation = ConversationBlocks()
    for number in range(300):
        conversation.delta(5, f"Paragraph {number} with `code` and some more words.\n\n")
    drawn(conversation, console)
    laid_out.clear()
    for word in ("It ", "goes ", "on"):
        conversation.delta(5, word)
        assert drawn(conversation, console)[-1].endswith(word.strip())
    assert laid_out == ["It ", "It goes ", "It goes on"]


def test_code_is_not_taken_apart() -> None:
    parts = transcript._paragraphs(ANSWER)
    assert parts == ["# Result", "All **tests** pass.", "- one\n- two", ANSWER[ANSWER.index("```") : -10], "The end."]
    assert transcript._paragraphs("a\n\n```\nb\n\nc") == ["a", "```\nb\n\nc"]


def test_an_answer_that_is_being_written_stays_below_what_is_read_from_the_log() -> None:
    """The first words may come before the log was read."""
    conversation = ConversationBlocks()
    conversation.delta(9, "being written")
    conversation.sending("a message")
    conversation.add(LogEntry(1, None, 0.0, "user", {"text": "the question"}))
    conversation.add(LogEntry(2, 1, 0.0, "assistant", {"text": "an earlier answer"}))
    conversation.delta(9, ", still")
    shown = [block.text for block in conversation.blocks]
    assert shown == ["the question", "an earlier answer", "being written, still", "a message"]
    conversation.add(LogEntry(9, 2, 0.0, "assistant", {"text": "written"}))
    assert [block.text for block in conversation.blocks] == [
        "the question",
        "an earlier answer",
        "written",
        "a message",
    ]


def test_a_long_paragraph_is_laid_out_in_pieces_and_nothing_of_it_is_missing(laid_out: list[str]) -> None:
    console = Console(width=60)
    conversation = ConversationBlocks()
    words = [f"word{number}" for number in range(3000)]
    conversation.delta(5, " ".join(words[:-1]))
    drawn(conversation, console)
    laid_out.clear()
    conversation.delta(5, f" {words[-1]}")
    assert " ".join(drawn(conversation, console)).split() == words
    assert len(laid_out) == 1 and len(laid_out[0]) <= 1000


def test_long_code_that_is_being_written_stays_code(laid_out: list[str]) -> None:
    console = Console(width=60)
    conversation = ConversationBlocks()
    code = [f"value_{number} = {number}  # *no* emphasis" for number in range(200)]
    conversation.delta(5, "```python\n" + "\n".join(code[:-1]))
    drawn(conversation, console)
    laid_out.clear()
    conversation.delta(5, f"\n{code[-1]}")
    assert [line.strip() for line in drawn(conversation, console) if line.strip()] == code
    assert max(map(len, laid_out)) <= 1100
