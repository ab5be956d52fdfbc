"""Processes in places other than this machine, through the real command line and daemon."""
