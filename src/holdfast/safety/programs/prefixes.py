"""Programs that run the command line behind their own options: `sudo`, `env`, `timeout` and their like."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.ops.start import run_flags
from holdfast.safety.assignments import declare_word
from holdfast.safety.programs.base import Run, joined
from holdfast.safety.programs.recipes import package_script
from holdfast.safety.state import Word

if TYPE_CHECKING:
    from holdfast.safety.programs.base import Handler
    from holdfast.safety.state import Feed


class Prefix(NamedTuple):
    values: str = ""
    """Options that take a value of their own."""
    skip: int = 0
    """Operands in front of the command line."""


PREFIXES = {
    "sudo": Prefix("-u -g -h -p -C -r -t -D -R -T -U --user --group --host --prompt --chdir --role --type"),
    "doas": Prefix("-u -C -a"),
    "pkexec": Prefix("--user"),
    "env": Prefix("-u --unset -C --chdir"),
    "nice": Prefix("-n --adjustment"),
    "ionice": Prefix("-c -n -p --class --classdata"),
    "chrt": Prefix("-T -P -D", 1),
    "taskset": Prefix("", 1),
    "nohup": Prefix(),
    "setsid": Prefix(),
    "timeout": Prefix("-s -k --signal --kill-after", 1),
    "gtimeout": Prefix("-s -k --signal --kill-after", 1),
    "stdbuf": Prefix("-i -o -e --input --output --error"),
    "unbuffer": Prefix(),
    "time": Prefix("-f -o --format --output"),
    "builtin": Prefix(),
    "exec": Prefix("-a"),
    "coproc": Prefix(),
    "chroot": Prefix("", 1),
    "unshare": Prefix("-S -G --setuid --setgid --root --wd"),
    "nsenter": Prefix("-t -S -G --target --setuid --setgid"),
    "setpriv": Prefix("--reuid --regid --groups"),
    "setarch": Prefix("", 1),
    "prlimit": Prefix("-p --pid"),
    "strace": Prefix("-o -e -p -s -u -a -E -I -O -P -S -X"),
    "ltrace": Prefix("-o -e -p -s -u -a -n -l"),
    "fakeroot": Prefix("-l -s -i -b"),
    "firejail": Prefix(),
    "eatmydata": Prefix(),
    "rlwrap": Prefix("-a -b -f -H -l -s"),
    "caffeinate": Prefix("-t -w"),
    "dbus-run-session": Prefix("--config-file --dbus-daemon"),
    "systemd-run": Prefix("-p -u -E -M -H --property --unit --setenv --slice --uid --gid --working-directory"),
    "systemd-inhibit": Prefix("--what --who --why --mode"),
    "xvfb-run": Prefix("-s -n -e -f -p -w"),
    "torsocks": Prefix(),
    "proxychains": Prefix("-f"),
    "proxychains4": Prefix("-f"),
    "cgexec": Prefix("-g"),
    "chronic": Prefix(),
    "entr": Prefix(),
    "watchexec": Prefix("-w -e -f -i -d --watch --exts"),
    "cross-env": Prefix(),
    "dotenv": Prefix("-f -e"),
    "gosu": Prefix("", 1),
    "su-exec": Prefix("", 1),
    "busybox": Prefix(),
    "toybox": Prefix(),
    "catchsegv": Prefix(),
    "valgrind": Prefix(),
    "perf": Prefix("-e -o -p", 1),
    "npx": Prefix("-p --package"),
    "bunx": Prefix(),
    "pnpx": Prefix(),
    "uvx": Prefix("--from --with"),
    "bwrap": Prefix("--chdir --setenv --unsetenv --uid --gid --hostname --tmpfs --dev --proc --dir --file --lock-file"),
    "chpst": Prefix("-u -U -b -e -m -d -o -p -f -c -r -t -P -/ -n -l -L"),
    "setuidgid": Prefix("", 1),
    "s6-setuidgid": Prefix("", 1),
    "softlimit": Prefix("-a -c -d -f -l -m -o -p -r -s -t"),
    "envdir": Prefix("", 1),
    "dumb-init": Prefix("-r --rewrite"),
    "tini": Prefix("-p -e"),
    "catatonit": Prefix(),
    "proot": Prefix("-r -b -w -q -k --rootfs --bind --cwd"),
    "daemonize": Prefix("-a -c -e -E -l -o -p -u"),
    "pssh": Prefix("-h -H -l -p -o -e -t -O -x -X --hosts --host --user --par --outdir --errdir --timeout"),
    "parallel-ssh": Prefix("-h -H -l -p -o -e -t -O -x -X --hosts --host --user --par --outdir --errdir --timeout"),
    "dsh": Prefix("-g -m -w"),
    "clush": Prefix("-w -g -x -l -o -f"),
    "sshpass": Prefix("-p -f -d -P"),
    "multitime": Prefix("-n -s -r -i -o -q -b"),
    "sem": Prefix("-j --id --jobs"),
    "faketime": Prefix("-p", 1),
    "reptyr": Prefix(),
    "-": Prefix(),
}
#: Programs of which one word is such a prefix.
RUNNERS = {
    "uv": ("run",),
    "poetry": ("run",),
    "pipenv": ("run",),
    "pdm": ("run",),
    "rye": ("run",),
    "hatch": ("run",),
    "bundle": ("exec",),
    "pnpm": ("exec", "dlx"),
    "yarn": ("exec", "dlx"),
    "mise": ("exec", "x"),
    "npm": ("exec", "x"),
    "asdf": ("exec",),
    "doppler": ("run",),
    "op": ("run",),
    "pixi": ("run",),
    "conda": ("run",),
    "holdfast": ("run",),
    "hold": ("run",),
}
#: Of these, `-c` has a text for a shell.
_TEXT_RUNNERS = ("holdfast", "hold", "npm", "pnpm", "yarn")
_RUN_VALUES = "-n --name --with --python -p --package --cwd -C --directory --env -e --session --label --extra --group"


def behind_prefix(run: Run) -> Feed | None:
    prefix = PREFIXES[run.name]
    if text := run.option("-c", "--call") if run.name == "npx" else None:
        return run.script(text.marked)
    rest = run.command_line(prefix.values.split(), prefix.skip)
    while rest and "=" in rest[0].text and rest[0].text.partition("=")[0].rstrip("%").isidentifier():
        declare_word(run.reader, rest.pop(0), run.state.copy())
    return run.perform(rest) if rest else None


def env(run: Run) -> Feed | None:
    if text := run.option("-S", "--split-string"):
        return run.script(text.marked)
    print_environment(run)
    return behind_prefix(run)


def print_environment(run: Run) -> Feed | None:
    """All of it, behind `source .env`."""
    if not run.arguments and "@dotenv" in run.state.values:
        run.find("@environment-shown", run.name)
    return None


def sudo(run: Run) -> Feed | None:
    """`sudo -s` and `sudo -i` are shells."""
    rest = behind_prefix(run)
    if rest is None and run.has("-s", "-i", "--shell", "--login") and run.stdin:
        return run.reader.perform(run.reader, [*_shell()], run.state, run.stdin, run.where)
    return rest


def coproc(run: Run) -> Feed | None:
    """`coproc NAME { … }` and `coproc command`."""
    named = len(run.arguments) > 1 and run.arguments[1].text == "{"
    return run.perform(run.arguments[1:] if named else run.arguments)


def command(run: Run) -> Feed | None:
    if run.has("-v", "-V"):
        from holdfast.safety.programs.texts import which

        return which(run)
    rest = run.command_line()
    return run.perform(rest) if rest else None


def runner(run: Run) -> Feed | None:
    operands = run.operands()
    if not operands or operands[0].text not in RUNNERS[run.name]:
        package_script(run)
        if run.name in ("holdfast", "hold") and operands and operands[0].text == "send":
            run.script("\n".join(word.marked for word in operands[2:]))
        return None
    place = run.arguments.index(operands[0])
    inner = run.after(place + 1)
    if text := inner.option("--stop-cmd") if run.name in ("holdfast", "hold") else None:
        run.script(text.marked)
    if run.name in _TEXT_RUNNERS and (text := inner.option("-c", "--command", "--call")):
        return run.script(text.marked)
    is_ours = run.name in ("holdfast", "hold")
    rest = inner.command_line(
        [flag for flag, takes in run_flags().items() if takes] if is_ours else _RUN_VALUES.split()
    )
    return run.perform(rest) if rest else None


def loader(run: Run) -> Feed | None:
    """The dynamic linker runs the program it is given."""
    rest = run.command_line(["--library-path", "--preload", "--audit", "--argv0"])
    return run.perform(rest) if rest else None


def watch(run: Run) -> Feed | None:
    rest = run.command_line(["-n", "--interval", "-q"])
    return run.script(joined(rest)) if rest else None


def su(run: Run) -> Feed | None:
    if text := run.option("-c", "--command", "--session-command"):
        return run.script(text.marked)
    if run.name == "runuser" and run.has("-u", "--user"):
        rest = run.command_line(["-u", "--user", "-g", "--group"])
        return run.perform(rest) if rest else None
    return run.reader.perform(run.reader, [*_shell()], run.state, run.stdin, run.where) if run.stdin else None


def flock(run: Run) -> Feed | None:
    rest = run.command_line(["-w", "-E", "--timeout", "--wait"], 1)
    if rest and rest[0].text in ("-c", "--command"):
        return run.script(joined(rest[1:]))
    return run.perform(rest) if rest else None


def typescript(run: Run) -> Feed | None:
    """`script -c TEXT` runs a text under a terminal."""
    text = run.option("-c", "--command") or run.option("-qc", "-qec", "-ec")
    return run.script(text.marked) if text else None


def _shell() -> list[Word]:
    return [Word("sh", "sh")]


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(PREFIXES, behind_prefix),
    **dict.fromkeys(RUNNERS, runner),
    "env": env,
    "printenv": print_environment,
    "sudo": sudo,
    "doas": sudo,
    "command": command,
    "coproc": coproc,
    "watch": watch,
    "su": su,
    "runuser": su,
    "flock": flock,
    "script": typescript,
}
