"""The verbs of the command line with one line of help each."""

from __future__ import annotations

#: Each verb has a module with its name in this package.
VERBS = {
    "run": "Run a command, in the foreground or with -d in the background",
    "ps": "List processes",
    "inspect": "Show the details of a process",
    "why": "Explain how a process ended, or what it waits for, and what to try",
    "tui": "Show processes and agents on the whole terminal, live",
    "dashboard": "Open the dashboard in the browser",
    "top": "Show CPU, memory and ports of processes, live",
    "exec": "Run another command in the directory and environment of a process",
    "logs": "Show the output of a process",
    "export": "Write the output of a process as a recording for asciinema",
    "wait": "Wait until processes end, are ready, or print a line",
    "kill": "End processes with all their children, or send a signal",
    "send": "Write to the input of a process",
    "cp": "Copy files to and from the place of a process",
    "screen": "Show the rendered terminal screen of a process",
    "attach": "Connect this terminal to a process",
    "resize": "Change the terminal size of a process",
    "backends": "Show where commands can run: this machine, containers, hosts; clean up there",
    "queue": "Show or change queues: what waits, how many run at once",
    "restart": "Run processes again, with the same command and id",
    "inbox": "Show the pending notifications of a session, or wait for one",
    "ack": "Acknowledge notifications, so that they are not delivered again",
    "digest": "Show what still runs for a session, in a few lines",
    "interrupt": "Interrupt the running tool call of a session; background processes go on",
    "events": "Show events, or follow them",
    "publish": "Publish an event",
    "rm": "Delete ended processes and their output",
    "up": "Start the processes of a holdfast.toml or Procfile, in the order of their dependencies",
    "down": "End the processes of a project",
    "notify": "List and test sinks for notifications: chats, mail, webhooks, desktop",
    "sessions": "List sessions",
    "session": "End or rename a session",
    "transfer": "Move a process to another session",
    "approvals": "List requests for approval, or answer them as they come",
    "approve": "Approve a command",
    "deny": "Deny a command, or revoke an approval",
    "judge": "Show what the safety policy says about a command, and why",
    "audit": "Show or verify the audit log",
    "agent": "Run an agent on any OpenAI-compatible endpoint: one task, or a conversation",
    "mcp": "Run the MCP server on stdin and stdout",
    "daemon": "Start, stop or restart the daemon, show its state, serve HTTP",
    "config": "Show or change the settings of this instance",
    "completion": "Print the completion script for bash, zsh or fish",
    "integrate": "Set up Claude Code or Codex to use holdfast",
    "acp": "Run an ACP agent for an editor, with its commands in holdfast",
    "hook": "Deliver notifications into conversations (called by hooks of Claude Code and Codex)",
    "service": "Install the daemon as a systemd user service",
    "docs": "Open the documentation or a manual page",
    "doctor": "Check what this machine offers, and what is missing",
    "bench": "Measure holdfast, alone or compared with other programs",
    "version": "Show the version",
}

#: Other names, and the words that each stands for.
ALIASES: dict[str, tuple[str, ...]] = {
    "ls": ("ps",),
    "list": ("ps",),
    "status": ("ps",),
    "start": ("run", "-d"),
    "stop": ("kill",),
    "stats": ("top",),
    "prune": ("rm", "--all"),
}


def resolved(words: list[str]) -> list[str]:
    """The words with the verb in place of its alias."""
    return [*ALIASES[words[0]], *words[1:]] if words and words[0] in ALIASES else words
