"""Events and notifications: the event stream, sessions, and the inbox with exactly-once delivery.

`inbox.py` decides which pending notices are offered, claimed and acknowledged (docs/delivery.md).
`objects.py` makes the objects that clients see, and `push.py` streams them. `event_stream.py` is for followers of
events, `progress.py` publishes new output by the clock, `sessions.py` knows names and owners.
"""
