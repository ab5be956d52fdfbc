"""The formats on connections: `frames` (daemon and clients), `worker` and `http_worker` (worker processes), `relay`
(bridges of events). `json_bounds` limits what is parsed.
"""
