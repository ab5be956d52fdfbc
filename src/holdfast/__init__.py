"""holdfast runs commands in the background; their output and exit codes survive any crash.

    with holdfast.connect(session="chat-42") as hf:
        process = hf.run("make test")
        print(hf.wait(process.id, timeout=60).exit_code, hf.logs(process.id, lines=50))

Names are loaded at their first use, so that importing holdfast is cheap.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast import project as project
    from holdfast.client.aio import AsyncClient, aconnect
    from holdfast.client.process import KillResult, Process, Waited
    from holdfast.client.results.approval import Approval
    from holdfast.client.results.notification import Notification
    from holdfast.client.results.page import LogPage
    from holdfast.client.results.search import Found, Match
    from holdfast.client.sync import Client, connect
    from holdfast.errors import (
        AlreadyRunning,
        Ambiguous,
        ApprovalRequired,
        BadValue,
        CommandDenied,
        CommandNotFound,
        Denied,
        DiskFull,
        HoldfastError,
        LimitReached,
        NoApprover,
        NotApproved,
        NoTerminal,
        NotExecutable,
        NotFound,
        NotNow,
        StartFailed,
        StdinClosed,
        StdinFull,
        Unreachable,
        Unsupported,
    )
    from holdfast.model.text import TextView

    __version__: str

__all__ = [
    # clients
    "connect", "Client", "aconnect", "AsyncClient",
    # objects that it returns
    "Process", "LogPage", "Found", "Match", "KillResult", "Waited", "Notification", "Approval", "TextView",
    # errors
    "HoldfastError",
    "NotFound", "Ambiguous", "BadValue", "LimitReached", "Denied", "Unsupported", "Unreachable", "DiskFull",
    "NotNow", "StdinClosed", "StdinFull", "NoTerminal", "AlreadyRunning",
    "StartFailed", "NotExecutable", "CommandNotFound",
    "NotApproved", "ApprovalRequired", "NoApprover", "CommandDenied",
]  # fmt: skip

_ELSEWHERE = {
    "connect": "client.sync",
    "Client": "client.sync",
    "aconnect": "client.aio",
    "AsyncClient": "client.aio",
    "Process": "client.process",
    "KillResult": "client.process",
    "Approval": "client.results.approval",
    "Waited": "client.process",
    "Notification": "client.results.notification",
    "LogPage": "client.results.page",
    "Found": "client.results.search",
    "Match": "client.results.search",
    "TextView": "model.text",
}

#: Packages that need no import of their own.
_PACKAGES = ("project",)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from holdfast.version import VERSION

        return VERSION
    if name in _PACKAGES:
        return __import__(f"holdfast.{name}", fromlist=["__all__"])
    if name not in __all__:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    home = f"holdfast.{_ELSEWHERE.get(name, 'errors')}"
    value: object = getattr(__import__(home, fromlist=[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
