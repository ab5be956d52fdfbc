"""The daemon: the only room where the other rooms meet."""
