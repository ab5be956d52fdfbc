"""The rules of notices: when matches and progress are notified, what notices say, and which sinks get them.

The class `Notice` and its kinds are in `events.py`, beside the events that they belong to.

`watching.py` limits how often a watch notifies and `breaker.py` does so across all processes; `matches.py` and
`match_data.py` are what such notices say, and `progress.py` is new output at an interval. `notice_texts.py` writes for
models and `summaries.py` for users; `untrusted_text.py` and `lenient.py` are for output and data of any kind in them.
`sinks.py` has the external receivers, and `sink_config.py` their configuration.
"""
