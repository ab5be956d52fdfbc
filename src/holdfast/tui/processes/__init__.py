"""Processes in the terminal UI: the list of all (`rows.py`, `view.py`), and one of them on a screen of its own.

`pane.py` shows one process with its output (`log_view.py`), its terminal (`terminal_view.py`) or its details, and
`actions.py` is what the user does to it.
"""
