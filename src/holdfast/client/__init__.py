"""The clients: `protocol` (no I/O), `sync` and `aio`, over the Unix socket or HTTP."""
