"""The clients: `sync` and `aio`, over the Unix socket (`link`, `aio_link`) or HTTP (`http/`).

`calls` has the calls of both that have logic of their own; `sync_calls` and `aio_calls` are generated. Most calls
return a `process`; `results/` has the rest. What each call on the command line imports is in this package itself:
another directory to look into takes time.
"""
