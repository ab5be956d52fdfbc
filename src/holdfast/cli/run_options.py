"""The options of `holdfast run`.

Written by `scripts/generate`: do not edit.
"""

from __future__ import annotations

from holdfast.cli.options import (
    JSON,
    Option,
    count,
    parse_codes,
    parse_number,
    parse_object,
    parse_variable,
)
from holdfast.model.units import parse_seconds, parse_size, parse_window

OPTIONS = [
    Option("-d", "--detach", help="Do not wait: print the id and return."),
    Option("-c", metavar="TEXT", help="Run TEXT by the shell, instead of a COMMAND."),
    Option(
        "--wait-ready", help="With -d: return when it is ready, with the exit codes of holdfast wait --until ready."
    ),
    Option(
        "--size",
        metavar="COLSxROWS",
        convert=parse_window,
        help="The size of the terminal. Default: that of this one, else 120x30.",
    ),
    Option("--detach-key", metavar="KEY", help="With -t: the key that leaves the command running. Default: ctrl-]."),
    Option("--name", metavar="NAME", help="A name that stands for the id. One running process can have it."),
    Option("--session", metavar="S", help="The session that owns it. Default: $HOLDFAST_SESSION, else default."),
    Option("--task", metavar="T", help="A second key to group processes by."),
    Option("--parent-session", metavar="S", help="The session that started its session."),
    Option("--cwd", metavar="DIR", help="Run in DIR. Default: the current directory."),
    Option(
        "--env",
        metavar="K=V",
        convert=parse_variable,
        repeat=True,
        help="Set variable K to V; K alone passes on the value it has here.",
    ),
    Option(
        "--clean-env",
        help="Leave secrets out of its environment, by name and by look; what is named with --env, or as pass_env in config.toml, stays. The names of what was left out are printed.",
    ),
    Option("-t", "--pty", help="Give it a terminal of its own."),
    Option(
        "--stdin",
        help="Keep its input open for send; in the foreground, pass on what comes from stdin. Without it, the command reads end of file at once. A terminal is always open.",
    ),
    Option("--split", help="Keep stderr apart from stdout. By default they are one log, in true order."),
    Option(
        "--lifetime",
        choices=("session", "daemon", "detached"),
        help="When it ends at the latest: with its session, when the daemon is stopped on purpose, or neither. A crash ends none of them. Default: detached.",
    ),
    Option("--deadline", metavar="S", convert=parse_seconds, help="A limit on how long it may run (90, 10m, 2h)."),
    Option("--deadline-action", choices=("kill", "notify"), help="What happens at the deadline. Default: kill."),
    Option("--ready-log", metavar="RE", help="Ready when a line of its output matches RE (RE2 syntax)."),
    Option("--ready-port", metavar="N", convert=count, help="Ready when it listens on TCP port N itself."),
    Option("--ready-http", metavar="URL", help="Ready when URL answers with 2xx or 3xx."),
    Option("--ready-uptime", metavar="S", convert=parse_seconds, help="Ready when it has been up for S seconds."),
    Option(
        "--ready-timeout",
        metavar="S",
        convert=parse_seconds,
        help="Not ready after S seconds means never; the process goes on all the same. Default: no limit.",
    ),
    Option(
        "--stall",
        metavar="S",
        convert=parse_seconds,
        help="Mark it as stalled when it has neither written nor used the processor for S seconds. Ends nothing.",
    ),
    Option(
        "--notify",
        choices=("any", "failure", "success", "never"),
        implies="any",
        help="Which ends its session is notified of (holdfast inbox). An end that the session asked for is not notified. Default: any; with a watch, none.",
    ),
    Option(
        "--watch",
        metavar="TEXT",
        repeat=True,
        help="Notify its session when a line of its output contains TEXT. With --notify=any the watch is dropped: the session is notified of the end instead.",
    ),
    Option("--watch-regex", metavar="RE", repeat=True, help="The same for a line that matches RE (RE2 syntax)."),
    Option(
        "--check-interval",
        metavar="S",
        convert=parse_seconds,
        help="Notify its session every S seconds of what it wrote since, if it did. At least 1.",
    ),
    Option(
        "--origin",
        metavar="JSON",
        convert=parse_object,
        help="An object that comes back with every notification of it, such as the address to answer to.",
    ),
    Option(
        "--restart",
        choices=("never", "on-failure", "always"),
        help="Run it again when it ends by itself: never, when it failed, or always. What was killed, or ended at its deadline, stays ended. Default: never.",
    ),
    Option(
        "--restart-limit",
        metavar="N",
        convert=count,
        help="Give up after N restarts in a row, 0 for never. A run that goes well begins a new row. Default: 5.",
    ),
    Option(
        "--restart-delay",
        metavar="S",
        convert=parse_seconds,
        help="The pause before the first restart; it doubles with each further one, up to a minute. Default: 1.",
    ),
    Option("--success-codes", metavar="N,N…", convert=parse_codes, help="Exit codes that are no failure. Default: 0."),
    Option(
        "--stop-cmd",
        metavar="TEXT",
        help="Run TEXT by the shell before the process is signalled, in its directory and environment and with its pid in HOLDFAST_PID, for as long as the grace period at most.",
    ),
    Option(
        "--if-running",
        choices=("reuse", "replace", "error", "allow"),
        help="When the session already runs this command in this directory: use that one, end it first, fail, or start another. Default: allow, and say so.",
    ),
    Option(
        "--log-cap",
        metavar="SIZE",
        convert=parse_size,
        help="Keep the last SIZE bytes of output (10M, 2G). Default: 256M, or as configured.",
    ),
    Option(
        "--memory",
        metavar="SIZE",
        convert=parse_size,
        help="A limit on its memory (500M, 2G), with everything that it starts: past it, all of it ends, and the reason is oom.",
    ),
    Option("--cpus", metavar="N", convert=parse_number, help="A limit on the processors that it may use (2, 0.5)."),
    Option("--pids", metavar="N", convert=count, help="A limit on how many processes and threads it may be."),
    Option("--sudo", help="Have sudo in it ask for a password by holdfast approvals --follow, without a terminal."),
    Option("--gate", help="Judge the command first: a dangerous one needs approval (holdfast approvals)."),
    Option("--shell", metavar="PATH", help="The shell for -c. Default: as configured, else bash, else sh."),
    JSON,
]

#: The option of Client.run that each of them is, by its attribute.
RUN_NAMES = {
    "name": "name",
    "task": "task",
    "parent_session": "parent_session",
    "cwd": "cwd",
    "env": "env",
    "clean_env": "clean",
    "pty": "pty",
    "stdin": "stdin",
    "split": "split",
    "lifetime": "lifetime",
    "deadline": "deadline",
    "deadline_action": "deadline_action",
    "ready_log": "ready_log",
    "ready_port": "ready_port",
    "ready_http": "ready_http",
    "ready_uptime": "ready_uptime",
    "ready_timeout": "ready_timeout",
    "stall": "stall",
    "notify": "notify",
    "watch": "watch",
    "watch_regex": "watch_regex",
    "check_interval": "check_interval",
    "origin": "origin",
    "restart": "restart",
    "restart_limit": "restart_limit",
    "restart_delay": "restart_delay",
    "success_codes": "success_codes",
    "stop_cmd": "stop_cmd",
    "if_running": "if_running",
    "log_cap": "log_cap",
    "memory": "memory",
    "cpus": "cpus",
    "pids": "pids",
    "sudo": "sudo",
    "gate": "gate",
    "shell": "shell",
}
