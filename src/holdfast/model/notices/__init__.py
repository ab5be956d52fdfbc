"""The rules of notices: which there are of matches and of progress, their texts, and the sinks that get them.

`watching.py` limits how often a watch notifies and `breaker.py` does so across all processes; `matches.py` and
`match_data.py` are what such notices say, and `progress.py` is new output at an interval. `notice_texts.py` writes for
models and `summaries.py` for users. `sinks.py` has the external receivers, and `sink_config.py` their configuration.
"""
