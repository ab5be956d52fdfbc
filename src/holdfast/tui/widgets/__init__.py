"""Widgets that several screens of the terminal UI use.

`lines_view.py` draws many lines, and `row_list.py` is a list with a cursor. `text_boxes.py` has inputs, and
`dialogs.py` asks the user. `status_line.py` is the lowest line of each screen.
"""
