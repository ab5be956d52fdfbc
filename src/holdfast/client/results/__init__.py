"""What calls of a client return, beside processes. Some of it reads on by itself, such as the next page of a log.

Each module is named after what it has: an approval, a notification, a page of a log, the screen of a terminal, what a
search has found, a command in the foreground.
"""
