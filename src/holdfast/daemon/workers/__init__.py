"""The daemon's worker processes: watch, screen, MCP, one for each sink, and one for each plugin.

`worker` is the mechanism that all of them use: a process that is started on demand, restarted after a crash and spoken
to over one link. Each of the other modules holds what is special about one worker and about its use in the daemon.
"""
