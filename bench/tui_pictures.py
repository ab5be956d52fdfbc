"""`python -m bench.tui_pictures [DIRECTORY]`: draw the pictures of docs/tui.md and docs/agent.md again, as SVG files.

It starts an instance of its own with a scripted model and a scripted program that speaks ACP, runs `holdfast tui` and
`holdfast agent` in tmux, and draws what they show. It needs tmux and the extras `tui` and `agent`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

import holdfast
from holdfast.tui.paint import DARK, LIGHT
from tests.agent.endpoint import Endpoint, Say, call
from tests.support import end_instance

_PROGRAM = r"""
import json, sys
def send(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def update(**fields): send(method="session/update", params={"sessionId": "s", "update": fields})
def say(text): update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})
for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        send(id=number, result={"protocolVersion": 1})
    elif method == "session/new":
        send(id=number, result={"sessionId": "s"})
    elif method == "session/prompt":
        text = message["params"]["prompt"][0]["text"]
        if "publish" in text:
            asked = {"toolCallId": "p", "title": "npm publish", "rawInput": {"command": "npm publish --access public"}}
            options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
            send(id="q", method="session/request_permission",
                 params={"sessionId": "s", "toolCall": {**asked, "kind": "execute"}, "options": options})
            continue
        steps = [("Find where lines are lost", "completed"), ("Mend it", "completed"), ("Run the tests", "in_progress")]
        update(sessionUpdate="plan", entries=[{"content": text, "status": status} for text, status in steps])
        for key, title in (("a", "Read src/parser.py"), ("b", "npm test")):
            update(sessionUpdate="tool_call", toolCallId=key, title=title, kind="execute", status="pending")
            update(sessionUpdate="tool_call_update", toolCallId=key, status="completed")
        say("The parser drops the last line of a file without a newline. I changed `split()` in "
            "**src/parser.py**; all 214 tests pass now.")
        send(id=number, result={"stopReason": "end_turn"})
"""

#: Programs that do as if they were those of their names.
_PROGRAMS = {
    "cargo": "echo '    Finished `dev` profile in 41.20s'",
    "make": "echo 'src/parser.py:88: unused variable: last' >&2; exit 1",
    "serve-docs": "sleep 600",
    "train": "echo 'epoch 12 of 40, loss 0.231'; sleep 600",
    "deploy": "printf 'Password for prod: '; read -r answer; sleep 600",
    "npm": r"""sleep 1.2; printf '\n  \033[32m➜\033[0m  Local:   \033[36mhttp://localhost:5173/\033[0m\n\n'
i=0; while [ $i -lt 400 ]; do i=$((i+1)); ms=$((i % 7 + 2)); case $((i % 40)) in
17) printf '12:04:%02d  \033[33mwarning\033[0m  src/table.ts: 2 rows have the same key\n' $((i % 60));;
*) printf '12:04:%02d  GET /src/page-%d.ts \033[32m200\033[0m in %d ms\n' $((i % 60)) $i $ms;; esac; done
sleep 600""",
}


class Picture:
    """A terminal in tmux, and the files that are drawn of it."""

    def __init__(self, directory: Path, target: Path) -> None:
        self._socket = str(directory / "tmux")
        self._target = target

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-S", self._socket, "-f", "/dev/null", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout

    def open(self, cols: int, rows: int, *words: str) -> None:
        self.tmux("kill-server")
        self._size = cols, rows
        env = [word for name in ("HOLDFAST_HOME", "PATH") for word in ("-e", f"{name}={os.environ[name]}")]
        size = ["-x", str(cols), "-y", str(rows)]
        command = [sys.executable, "-m", "holdfast", *words]
        while not self.tmux("list-panes"):  # a server that just ends takes no session
            self.tmux("new-session", "-d", *size, *env, "-e", "COLORTERM=truecolor", *command)
        self.tmux("set", "-g", "default-terminal", "tmux-256color")

    def sees(self, *parts: str) -> None:
        end = time.monotonic() + 60
        while not all(part in (shown := self.tmux("capture-pane", "-p")) for part in parts):
            assert time.monotonic() < end, f"{parts} not in\n{shown}"
            time.sleep(0.1)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.tmux("send-keys", key)

    def write(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)
        self.press("Enter")

    def draw(self, name: str, title: str, colours: dict[str, str] = DARK) -> None:
        time.sleep(1.5)
        cols, _ = self._size
        shown = self.tmux("capture-pane", "-e", "-p", "-N").rstrip("\n")
        with open(os.devnull, "w") as null:
            console = Console(width=cols, record=True, file=null, force_terminal=True, color_system="truecolor")
            console.print(Text.from_ansi(shown), soft_wrap=True)
        text = console.export_svg(title=title, theme=_theme(colours), unique_id=name)
        text = re.sub(r"@font-face \{.*?\}", "", text, flags=re.S).replace("Fira Code, monospace", "monospace")
        text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
        (self._target / f"{name}.svg").write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n")


def _theme(colours: dict[str, str]) -> TerminalTheme:
    def rgb(name: str) -> tuple[int, int, int]:
        text = colours[name].lstrip("#")
        return int(text[:2], 16), int(text[2:4], 16), int(text[4:], 16)

    named = [rgb(name) for name in ("back", "bad", "good", "warn", "accent", "accent", "accent", "text")]
    return TerminalTheme(rgb("back"), rgb("text"), named, named)


def main() -> int:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs" / "pictures"
    with tempfile.TemporaryDirectory(prefix="hf-") as scratch, Endpoint() as endpoint:
        home = Path(scratch) / "home"
        os.environ["HOLDFAST_HOME"] = str(home)
        os.environ.pop("HOLDFAST_SESSION", None)
        picture = Picture(Path(scratch), target)
        try:
            _write_config(home, Path(scratch), endpoint)
            _draw_all(picture, endpoint, Path(scratch))
        finally:
            picture.tmux("kill-server")
            end_instance(str(home))
    return 0


def _write_config(home: Path, scratch: Path, endpoint: Endpoint) -> None:
    (scratch / "program.py").write_text(_PROGRAM)
    (home / "agent").mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    program = f'["{sys.executable}", "{scratch}/program.py"]'
    text = f'base_url = "{endpoint.url}"\nmodel = "qwen3-coder"\n[acp.reviewer]\ncommand = {program}\n'
    (home / "agent/config.toml").write_text(text)


def _draw_all(picture: Picture, endpoint: Endpoint, scratch: Path) -> None:
    job = f"until [ -e {scratch}/go ]; do sleep 0.1; done; echo '2 failed, 212 passed'; exit 1"
    for name, script in {**_PROGRAMS, "pytest": job}.items():
        (scratch / name).write_text(f"#!/bin/sh\n{script}\n")
        (scratch / name).chmod(0o755)
    os.environ["PATH"] = f"{scratch}:{os.environ['PATH']}"
    endpoint.script(
        call("terminal", command="pytest -q", background=True, notify_on_complete=True),
        Say("The tests run in the background; I go on when they end."),
        Say("Two tests fail, both in **test_parser.py**: `parse()` forgets the last line."),
        Say("The development server is ready, too: http://localhost:5173/"),
        model="qwen3-coder",
    )
    with holdfast.connect() as client:
        client.run(["cargo", "build"], session="ci")
        client.run(["make", "lint"], name="lint", session="ci", notify="failure")
    picture.open(100, 26, "agent", "--session", "chat-42")
    picture.sees("session chat-42")
    picture.write("fix the failing tests")
    picture.sees("I go on when")
    (scratch / "go").touch()
    picture.sees("Two tests fail")
    picture.draw("agent-100", "holdfast agent --session chat-42")
    with holdfast.connect(session="chat-42") as client:
        client.run(["npm", "run", "dev"], name="web", ready_log="Local:", notify="never")
    picture.open(100, 26, "tui")
    picture.sees("chat-42 ●1")
    picture.press("F2")
    picture.sees("write to the agent", "server is ready")
    picture.draw("tui-100", "holdfast tui: a session")
    picture.press("F1")
    picture.sees("enter open", "pytest -q")
    picture.press("C-n")
    picture.sees("claude-code")
    picture.press("Down")
    picture.press(*["BSpace"] * 20)
    picture.tmux("send-keys", "-l", "review")
    picture.sees("● reviewer", "review")
    picture.draw("tui-new-session", "holdfast tui: ctrl-N")
    picture.press("Enter")
    picture.sees("write to the agent")
    picture.write("why does the parser lose a line?")
    picture.sees("214 tests pass")
    picture.write("publish it")
    picture.sees("npm publish --access")
    picture.draw("tui-program", "holdfast tui: another program as the agent, and its question")
    picture.press("Escape")
    time.sleep(1.0)  # else it is one key with the next
    picture.press("|")
    picture.sees("Two tests fail", "publish it")
    picture.draw("tui-beside", "holdfast tui: two sessions side by side")
    with holdfast.connect(session="ops") as client:
        client.run(["train", "--epochs", "40"], name="train", queue="gpu", stall=1.0)
        client.run(["train", "--epochs", "80"], queue="gpu")
        client.kill(client.run(["serve-docs"], name="docs").id)
        client.run(["deploy"], pty=True)
    picture.open(80, 24, "tui", "--theme", "light")
    picture.sees("needs input", "stalled", "waiting", "killed", "ready")
    picture.draw("tui-80-light", "holdfast tui --theme light", LIGHT)
    picture.open(100, 26, "tui")
    picture.sees("needs input", "stalled", "› ")
    picture.draw("tui-all", "holdfast tui")
    picture.write("/web")
    picture.sees("/web (1)")
    picture.press("l")
    picture.sees("GET /src", "following")
    picture.write("/error|warn")
    picture.sees("of ")
    picture.draw("tui-output", "holdfast tui: the output of a process, searched")


if __name__ == "__main__":
    sys.exit(main())
