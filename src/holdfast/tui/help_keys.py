"""The keys, as `?` shows them."""

from __future__ import annotations

#: Below the list of processes.
LIST_KEYS = "enter open · l output · t terminal · x end · / filter · ^K commands · ? keys"

HELP = (
    ("j k ↑ ↓", "move"),
    ("g G", "first, last"),
    ("enter", "open"),
    ("esc", "back"),
    ("/", "filter the list, find in the output"),
    ("l", "output"),
    ("t", "terminal: you type into it; ctrl-] leaves"),
    ("d", "details: why it ended, what to try"),
    ("s", "send a line to its input"),
    ("x", "end it, after a question"),
    ("r", "restart it"),
    ("y", "copy its id"),
    ("a alt-a", "answer what needs you: approvals, questions"),
    ("f", "follow the output; n N: next, previous hit"),
    ("← →", "the rest of long lines; e: its stderr"),
    ("i", "inbox of the session"),
    ("[ ]  1…9  F1…F9", "previous, next tab; a tab by its number"),
    ("|", "one more session beside this one"),
    ("ctrl-O ctrl-N", "sessions; a new one with an agent"),
    ("ctrl-C", "interrupt the agent of the session"),
    ("ctrl-K", "all commands: events, backends, light or dark, …"),
    ("ctrl-Q", "leave: everything goes on running"),
)
