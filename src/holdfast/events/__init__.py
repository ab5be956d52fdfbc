"""The bus: events are published under a topic and delivered to all who subscribed to a pattern that matches it.

    from holdfast.events import publish, subscribe, unsubscribe

    handle = subscribe("process.*", lambda event: print(event["type"], event["ts"]))
    publish("process.started", {"id": "proc_0123456789ab"})
    unsubscribe(handle)

These work on one bus that all of this program shares. A `Bus` of one's own is a bus apart. Nothing here needs the
daemon.
"""

from __future__ import annotations

from holdfast.events.bus import Bus, Handle

__all__ = ["BUS", "Bus", "Handle", "publish", "subscribe", "unsubscribe"]

#: The bus of this program.
BUS = Bus()

publish = BUS.publish
subscribe = BUS.subscribe
unsubscribe = BUS.unsubscribe
