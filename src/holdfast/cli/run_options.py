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
    signed,
)
from holdfast.model.units import parse_seconds, parse_size, parse_window

OPTIONS = [
    Option("-d", "--detach", help="Run in the background: print the id and return."),
    Option("-c", metavar="TEXT", help="Run TEXT with the shell, instead of COMMAND."),
    Option(
        "--wait-ready", help="With -d: return when it is ready, with the exit codes of holdfast wait --until ready."
    ),
    Option(
        "--size",
        metavar="COLSxROWS",
        convert=parse_window,
        help="The size of the terminal. Default: that of this terminal, else 120x30.",
    ),
    Option(
        "--detach-key",
        metavar="KEY",
        help="The key that detaches a foreground run on a terminal, and leaves the command running. Default: ctrl-].",
    ),
    Option(
        "--no-sandbox",
        help="With --gate: run it outside the sandbox into which the policy would put it. That needs approval.",
    ),
    Option("--name", metavar="NAME", help="A name that can be used instead of the id. Unique among running processes."),
    Option(
        "--session", metavar="S", help="The session that owns the process. Default: $HOLDFAST_SESSION, else default."
    ),
    Option("--task", metavar="T", help="A second key to group processes by."),
    Option(
        "--parent-session", metavar="S", help="The parent of the session, which receives its processes when it ends."
    ),
    Option(
        "--backend",
        metavar="NAME",
        help="Run it there: local, podman, docker, apptainer, ssh, or a backend of config.toml (holdfast backends). The environment is that of the place, with --env on top. Default: local.",
    ),
    Option(
        "--image",
        metavar="IMG",
        help="With a backend of containers: the image. Processes of one task (else of one session) with the same image and options share a container.",
    ),
    Option(
        "--host",
        metavar="DEST",
        help="With ssh: the host, as ssh takes it ([USER@]HOST, or a Host of ssh_config). Implies --backend ssh.",
    ),
    Option(
        "-w",
        "--cwd",
        metavar="DIR",
        help="Run in DIR. Default: the current directory; with --backend, the default directory there.",
    ),
    Option(
        "-e",
        "--env",
        metavar="K=V",
        convert=parse_variable,
        repeat=True,
        help="Set variable K to V; K alone passes on its current value.",
    ),
    Option(
        "--clean-env",
        help="Remove variables that look like secrets, by name or by value, from the environment. Those named with --env, or as pass_env in config.toml, stay. The names of removed variables are printed.",
    ),
    Option("-t", "--pty", help="Allocate a pseudo-terminal."),
    Option(
        "-i",
        "--stdin",
        help="Keep stdin open for holdfast send; in the foreground, pass on this stdin. Default: stdin is empty; in the foreground, a pipe or a file is passed on. The stdin of a terminal is always open.",
    ),
    Option("--split", help="Keep stderr in a log of its own. Default: one log for both, in the order of writing."),
    Option(
        "--lifetime",
        choices=("session", "daemon", "detached"),
        help="Whether to end it with its session, when the daemon is stopped (not when it crashes), or never. Default: detached (never).",
    ),
    Option(
        "--on-boot",
        help="Run it again after a boot, when the daemon starts: once, with the same id. See holdfast service.",
    ),
    Option("--deadline", metavar="S", convert=parse_seconds, help="The longest that it may run (90, 10m, 2h)."),
    Option("--deadline-action", choices=("kill", "notify"), help="What happens at the deadline. Default: kill."),
    Option("--ready-log", metavar="RE", help="Ready when a line of output matches RE (RE2 syntax)."),
    Option("--ready-port", metavar="N", convert=count, help="Ready when a process of its tree listens on TCP port N."),
    Option("--ready-http", metavar="URL", help="Ready when a GET of URL returns 2xx or 3xx."),
    Option("--ready-uptime", metavar="S", convert=parse_seconds, help="Ready when it has run for S seconds."),
    Option(
        "--ready-timeout",
        metavar="S",
        convert=parse_seconds,
        help="Report it as not ready after S seconds. The process goes on. Default: no limit.",
    ),
    Option(
        "--stall",
        metavar="S",
        convert=parse_seconds,
        help="Report it as stalled after S seconds without output and CPU use. The process goes on.",
    ),
    Option(
        "--notify",
        choices=("any", "failure", "success", "never"),
        implies="any",
        help="Notify the session of the end (holdfast inbox): of any end, of failures, of successes, or never. The session is not notified of an end that it asked for. Default: any; with --watch, never.",
    ),
    Option(
        "--watch",
        metavar="TEXT",
        repeat=True,
        help="Notify the session when a line of output contains TEXT. With --notify=any the watch is dropped: the session is notified of the end only.",
    ),
    Option(
        "--watch-regex",
        metavar="RE",
        repeat=True,
        help="Notify the session when a line of output matches RE (RE2 syntax).",
    ),
    Option(
        "--check-interval",
        metavar="S",
        convert=parse_seconds,
        help="Notify the session of new output every S seconds, at least 1.",
    ),
    Option(
        "--queue",
        metavar="NAME",
        help="Start it when its turn in this queue has come: a queue runs one process at a time, or as many as holdfast queue NAME --limit N allows. Until then its status is waiting. Implies -d.",
    ),
    Option("--after", metavar="ID", repeat=True, help="Start it when this process has ended. Implies -d."),
    Option(
        "--after-success",
        metavar="ID",
        repeat=True,
        help="Start it when this process has ended successfully. If that fails, this one ends with reason skipped. Implies -d.",
    ),
    Option(
        "--origin",
        metavar="JSON",
        convert=parse_object,
        help="An object that every notification of this process carries, such as a reply address.",
    ),
    Option(
        "--restart",
        choices=("never", "on-failure", "always"),
        help="Restart it when it exits: never, when it failed, or always. Not after holdfast kill or its deadline. Default: never.",
    ),
    Option(
        "--restart-limit",
        metavar="N",
        convert=count,
        help="Give up after N failed restarts in a row; 0 for no limit. Default: 5.",
    ),
    Option(
        "--restart-delay",
        metavar="S",
        convert=parse_seconds,
        help="Seconds before the first restart. They double with each further one, up to 60. Default: 1.",
    ),
    Option(
        "--success-codes", metavar="N,N…", convert=parse_codes, help="Exit codes that count as success. Default: 0."
    ),
    Option(
        "--stop-cmd",
        metavar="TEXT",
        help="To end it, first run TEXT with the shell, in its directory and environment and with its pid in HOLDFAST_PID. SIGTERM follows when TEXT has ended, or after the grace period.",
    ),
    Option(
        "--if-running",
        choices=("reuse", "replace", "error", "allow"),
        help="If the session already runs this command in this directory: return that process, end it first, fail, or start another. Default: allow.",
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
        help="Limit the memory of its process tree (500M, 2G). Beyond it the tree is killed, with reason oom.",
    ),
    Option("--cpus", metavar="N", convert=parse_number, help="Limit the CPUs that its process tree may use (2, 0.5)."),
    Option("--pids", metavar="N", convert=count, help="Limit the number of processes and threads of its tree."),
    Option(
        "--nice",
        metavar="N",
        convert=signed,
        help="Its nice value, -20 (highest priority) to 19. Below 0 needs privileges. Default: that of the daemon.",
    ),
    Option(
        "--sandbox",
        help="Run it in a sandbox (bubblewrap): it can write to its directory (not to a home or system directory), to those of --writable and to a /tmp of its own, and only read everything else. It has no network and sees no process outside.",
    ),
    Option(
        "--writable",
        metavar="DIR",
        repeat=True,
        help="With --sandbox: a directory that it can write to as well. A relative one is below its own directory.",
    ),
    Option(
        "--network",
        choices=("none", "host"),
        help="With --sandbox: no network, or that of this machine. Default: none, so that nothing that it can read leaves the machine unnoticed.",
    ),
    Option("--sudo", help="Let sudo in the command ask for its password in holdfast approvals --follow."),
    Option("--gate", help="Check the command first: a dangerous one needs approval (holdfast approvals)."),
    Option("--shell", metavar="PATH", help="The shell for -c. Default: as configured, else bash, else sh."),
    JSON,
]

#: The option of Client.run that each of them is, by its attribute.
RUN_NAMES = {
    "name": "name",
    "task": "task",
    "parent_session": "parent_session",
    "backend": "backend",
    "image": "image",
    "host": "host",
    "cwd": "cwd",
    "env": "env",
    "clean_env": "clean",
    "pty": "pty",
    "stdin": "stdin",
    "split": "split",
    "lifetime": "lifetime",
    "on_boot": "on_boot",
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
    "queue": "queue",
    "after": "after",
    "after_success": "after_success",
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
    "nice": "nice",
    "sandbox": "sandbox",
    "writable": "writable",
    "network": "network",
    "sudo": "sudo",
    "gate": "gate",
    "shell": "shell",
}
