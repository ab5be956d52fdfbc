"""Commands that run elsewhere: over ssh, in containers, in pods, in terminals that others look at."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.safety.marks import HOME
from holdfast.safety.programs.base import Run, joined, names
from holdfast.safety.programs.others import send
from holdfast.safety.state import Call, Feed, Word

if TYPE_CHECKING:
    from holdfast.safety.programs.base import Handler

_SSH_VALUES = names("-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w -B")
_BOX_VALUES = names(
    "-e --env --env-file -u --user -w --workdir -v --volume -p --publish --name --network --net --mount -h --hostname "
    "--entrypoint -l --label -m --memory --cpus --platform --add-host --link --device --tmpfs --cap-add --cap-drop "
    "--security-opt --restart --log-driver --gpus --shm-size --ulimit --dns --index --detach-keys --pull --runtime "
    "--volumes-from --userns --ipc --pid --cgroupns --project-name --file -f"
)
#: Options of ssh whose value is run on this machine.
_HELPERS = re.compile(r"(?:ProxyCommand|LocalCommand|KnownHostsCommand)[= ]\s*(.+)", re.DOTALL)
_POD_VALUES = names("-n --namespace -c --container --context --kubeconfig -f --filename --cluster --user")


def ssh(run: Run) -> Feed | None:
    send(run)
    for word in run.arguments:
        if found := _HELPERS.search(word.text):
            run.script(found[1])
    rest = run.command_line(_SSH_VALUES)
    # Options may stand behind the host, too.
    line = Run(run.reader, run.name, tuple(rest[1:]), run.state, run.stdin, run.where).command_line(_SSH_VALUES)
    if any(re.match(r"-[A-Za-z]*R", word.text) for word in run.arguments[: len(run.arguments) - len(line)]):
        run.find("@tunnel", *(word.text for word in run.arguments))
    state = run.state.copy()
    state.cwd = HOME
    there = Run(run.reader, run.name, run.arguments, state, run.stdin, run.where)
    if line:
        there.script(joined(line))
    elif rest and run.stdin and run.stdin.text is not None:
        there.script(run.stdin.text)
    return None


def container(run: Run) -> Feed | None:
    operands = run.operands(_BOX_VALUES)
    words = [word.text for word in operands]
    if words[:1] == ["compose"]:
        operands, words = operands[1:], words[1:]
    if words[:1] == ["container"]:
        operands, words = operands[1:], words[1:]
    if not words or words[0] not in ("exec", "run"):
        return None
    inner = run.after(run.arguments.index(operands[0]) + 1)
    line = inner.command_line(_BOX_VALUES)
    _mounts(inner, len(inner.arguments) - len(line), words[0] == "run")
    state = run.state.copy()
    state.cwd = "/@container"
    entry = inner.option("--entrypoint")
    command = [*([entry] if entry else []), *line[1:]]
    if command:
        run.reader.perform(run.reader, command, state, run.stdin, run.where)
    return None


def _mounts(run: Run, count: int, matters: bool) -> None:
    """Note what of the machine a container gets to see."""
    for place, word in enumerate(run.arguments[:count] if matters else ()):
        text = word.marked
        previous = run.arguments[place - 1].text if place else ""
        if previous in ("-v", "--volume"):
            source = text
        elif text.startswith(("--volume=", "-v=")):
            source = text.partition("=")[2]
        elif previous == "--mount" or text.startswith("--mount="):
            fields = dict(part.partition("=")[::2] for part in text.removeprefix("--mount=").split(","))
            source = fields.get("source") or fields.get("src") or ""
        else:
            continue
        run.reader.report(Call("@mount", (Word(source.partition(":")[0], word.source),), run.where, run.state.cwd))


def kubectl(run: Run) -> Feed | None:
    operands = run.operands(_POD_VALUES)
    texts = [word.text for word in run.arguments]
    if operands and operands[0].text == "exec" and "--" in texts:
        state = run.state.copy()
        state.cwd = "/@container"
        run.reader.perform(run.reader, list(run.arguments[texts.index("--") + 1 :]), state, run.stdin, run.where)
    return None


def tmux(run: Run) -> Feed | None:
    """Text that is typed elsewhere or run in a new window."""
    operands = run.operands(["-t", "-s", "-n", "-c", "-x", "-y", "-e", "-F", "-L", "-S", "-f", "-l", "-p"])
    if not operands:
        return None
    verb, rest = operands[0].text, operands[1:]
    if verb in ("send-keys", "send"):
        run.script(joined(word for word in rest if word.text not in ("Enter", "C-m", "KPEnter")))
    elif verb in (
        "new-session",
        "new",
        "new-window",
        "neww",
        "split-window",
        "splitw",
        "respawn-pane",
        "run-shell",
        "run",
    ):
        run.script(joined(rest))
    return None


def screen(run: Run) -> Feed | None:
    texts = [word.text for word in run.arguments]
    if "stuff" in texts:
        run.script(joined(run.arguments[texts.index("stuff") + 1 :]))
        return None
    rest = run.command_line(["-S", "-c", "-t", "-h", "-L", "-Logfile", "-p", "-r", "-x", "-e"])
    return run.perform(rest) if rest and "-X" not in texts else None


def copier(run: Run) -> Feed | None:
    """`rsync -e` and `scp -S` name the program that connects."""
    send(run)
    options = ("-e", "--rsh", "--rsync-path") if run.name == "rsync" else ("-S",)
    for helper in filter(None, (run.option(option) for option in options)):
        run.script(helper.marked)
    if run.name == "sftp" and run.stdin and run.stdin.text:
        run.script(run.stdin.text)
    return None


HANDLERS: dict[str, Handler] = {
    "ssh": ssh,
    "mosh": ssh,
    "autossh": ssh,
    **dict.fromkeys(("rsync", "scp", "sftp"), copier),
    "docker": container,
    "podman": container,
    "nerdctl": container,
    "docker-compose": container,
    "podman-compose": container,
    "kubectl": kubectl,
    "oc": kubectl,
    "k": kubectl,
    "tmux": tmux,
    "screen": screen,
}
