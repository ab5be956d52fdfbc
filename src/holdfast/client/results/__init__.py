"""What calls of a client return beside processes, and the calls that need more than one reply.

Each module is named after what it has: an approval, a notification, a page of a log, the screen of a terminal, what a
search has found, a command in the foreground.
"""
