"""Looking for patterns in what many processes write: the engine, and the process that it runs in."""
