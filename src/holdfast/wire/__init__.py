"""The formats on connections: `frames` (daemon and clients), `worker` (worker processes), `relay` (bridges)."""
