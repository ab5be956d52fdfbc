"""Anchor and keeper: they start the commands of one place and hold their output, input and exit codes.

Standard library only, and nothing of holdfast. `bundle`, `protocol` and `failpoints` are public: holdfast imports
them. All other modules are private.

    anchor          parent of the keeper; starts it again
    keeper          the keeper itself: what the modules below share
    requests        what the daemon can request (`protocol` describes it)
    starter         starts commands; `fork_server` runs the child between fork and exec
    held_command    a command that was started, and its streams: `output` into its log, `journal` into its stdin
    ending          stops and exits
    adopt           takeover from the last keeper
    bundle          files and directories; `log` writes keeper.log
    connections     event loop, control streams, holders of descriptors
    kernel          system calls, /proc, process trees; `cgroups` has cgroups and limits
"""
