"""Programs that run a text they are given with an option, or a command line behind words of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.safety.programs.base import Run, names

if TYPE_CHECKING:
    from holdfast.safety.programs.base import Handler
    from holdfast.safety.state import Feed


class Launcher(NamedTuple):
    texts: tuple[str, ...] = ()
    """Options whose value a shell reads."""
    words: tuple[str, ...] = ()
    """Words, one of which stands in front of the command line: `exec`."""
    skip: int = 0
    """Operands between such a word and the command line."""
    values: tuple[str, ...] = ()
    """Other options with a value."""
    operands: bool = False
    """Whether every operand is a text that a shell reads."""


def _texts(options: str) -> Launcher:
    return Launcher(names(options))


def _behind(words: str, skip: int = 0, values: str = "") -> Launcher:
    return Launcher(words=names(words), skip=skip, values=names(values))


LAUNCHERS = {
    "ansible": _texts("-a --args"),
    "capsh": _texts("-c"),
    "complete": _texts("-C"),
    "concurrently": Launcher(operands=True, values=names("-n --names -c -p --max-processes --restart-tries")),
    "npm-run-all": Launcher(),
    "direnv": _behind("exec", 1),
    "distrobox": _behind("enter --", 1, "-n --name"),
    "flatpak": Launcher(names("--command")),
    "fzf": _texts("--preview --bind --history"),
    "gnome-terminal": Launcher(names("-e --command"), names("--")),
    "hyperfine": Launcher(
        names("-p --prepare -c --cleanup -s --setup"), values=names("-w -r -m -M -n -N"), operands=True
    ),
    "incus": _behind("exec", 1, "--env --cwd --user --group"),
    "ip": _behind("exec", 1),
    "konsole": _behind("-e"),
    "less": _texts("+!"),
    "lxc": _behind("exec", 1, "--env --cwd --user --group"),
    "machinectl": _behind("shell", 1),
    "man": _texts("-P --pager"),
    "nix": Launcher(words=names("-c --command")),
    "nix-shell": _texts("--run --command"),
    "nodemon": _texts("-x --exec"),
    "onchange": _behind("--"),
    "pm2": Launcher(words=names("--interpreter-args")),
    "rg": _texts("--pre"),
    "schroot": _behind("--"),
    "sg": _texts("-c"),
    "sort": _texts("--compress-program"),
    "split": _texts("--filter"),
    "start-stop-daemon": Launcher(names("-x --exec -a --startas"), names("--")),
    "systemd-nspawn": _behind("--"),
    "tsc-watch": _texts("--onSuccess --onFailure"),
    "vagrant": _texts("-c --command"),
    "xterm": _behind("-e"),
    "alacritty": _behind("-e --command"),
    "zip": _texts("-TT --unzip-command"),
}


def launch(run: Run) -> Feed | None:
    launcher = LAUNCHERS[run.name]
    for place, word in enumerate(run.arguments):
        _option_text(run, launcher, place)
        if word.text in launcher.words:
            line = run.after(place + 1).command_line(launcher.values, launcher.skip)
            run.perform(line[1:] if line and line[0].text == "--" else line)
            break
    if launcher.operands:
        for word in run.operands((*launcher.texts, *launcher.values)):
            run.script(word.marked)
    return None


def _option_text(run: Run, launcher: Launcher, place: int) -> None:
    """Every value counts, for the last one may not be the one that runs."""
    text = run.arguments[place].marked
    if text in launcher.texts and place + 1 < len(run.arguments):
        run.script(run.arguments[place + 1].marked)
    for option in launcher.texts:
        if option.startswith("--") and text.startswith(option + "="):
            run.script(text[len(option) + 1 :])
        elif option.startswith("+") and text.startswith(option):
            run.script(text[len(option) :])


HANDLERS: dict[str, Handler] = dict.fromkeys(LAUNCHERS, launch)
