"""Speaking with the daemon: one conversation without I/O, a blocking client and its async twin."""
