"""The daemon's worker processes: watch, screen, sinks and MCP.

`worker` is the mechanism that all four use: a process that is started on demand, restarted after a crash and spoken to
over one link. Each of the other modules holds what is special about one worker and about its use in the daemon.
"""
