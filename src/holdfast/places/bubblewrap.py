"""The sandbox of a local command: the command line of bubblewrap, which makes its namespaces.

The keeper's fork server runs it without a command, and starts the command in what it has made (`fork_server.c`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from shutil import which

from holdfast.errors import BadValue, Unsupported

_NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--as-pid-1")
#: Empty in every sandbox. Sockets of other programs are in /run: through one of systemd, a command could leave.
_OWN = ("/tmp", "/var/tmp", "/run")
#: What programs need of /run: the addresses of name servers, and the programs of NixOS.
_SHOWN = (
    "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf", "/run/current-system",
    "/run/booted-system", "/run/opengl-driver",
)  # fmt: skip
#: The kernel's: a process with the host's could reach what is outside.
_KERNEL = ("/proc", "/sys", "/dev")
#: Settings of the whole machine. Root could change them without any privilege: it owns these files.
_SETTINGS = (
    "/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi", "/proc/driver",
    "/proc/mtrr", "/proc/latency_stats", "/proc/timer_stats", "/proc/sched_debug", "/proc/pressure", "/proc/slabinfo",
)  # fmt: skip
_SYSTEM = (*_KERNEL, "/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/sbin", "/usr")
#: Parents of many things. What is in them may be a workspace.
_TOP = ("/", *_OWN, "/home", "/media", "/mnt", "/opt", "/root", "/srv", "/var", "/var/lib")


def sandbox_argv(
    cwd: str, writable: Iterable[str], network: str, hidden: Iterable[str], shown: Mapping[str, bool]
) -> list[str]:
    """Bubblewrap with its arguments, but for the command. Relative paths of `writable` are below `cwd`.

    `shown` are files in `hidden` that are visible all the same, each with whether it can be written.
    Raises BadValue for a directory that cannot be writable, Unsupported where bubblewrap is not installed.
    """
    program = which("bwrap") or which("bwrap", path="/usr/bin:/bin:/usr/local/bin")
    if program is None:
        raise Unsupported("bubblewrap (bwrap) is not installed, so there is no sandbox", next="apt install bubblewrap")
    secret = sorted({path for path in map(os.path.realpath, hidden) if os.path.isdir(path)})
    workspace = _real(cwd)
    _refuse_hidden("cwd", cwd, workspace, secret)
    binds = {_checked(cwd, path, secret): "--bind" for path in writable}
    if workspace not in ("/", *_OWN) and not _is_below(workspace, _KERNEL):
        # A missing one is reported when the command is started in it.
        binds.setdefault(workspace, "--bind-try" if _is_workspace(workspace) else "--ro-bind-try")
    arguments = [program, *_NAMESPACES, "--cap-drop", "ALL"]
    arguments += ["--unshare-net"] if network == "none" else []
    arguments += ["--chdir", "/", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for path in _SETTINGS:
        arguments += ["--ro-bind-try", path, path]
    arguments += _mounts(binds)
    tops = [path for path in secret if not _is_below(os.path.dirname(path), secret)]
    for path in tops:
        arguments += ["--tmpfs", path]
    for path, is_writable in shown.items():
        arguments += ["--bind-try" if is_writable else "--ro-bind-try", path, path]
    for path in tops:
        arguments += ["--remount-ro", path]
    return arguments


def _is_workspace(path: str) -> bool:
    """Whether a command may write to its directory: not to a whole home, to settings in it, or to the system."""
    home = os.path.realpath(os.path.expanduser("~"))
    if path in _TOP or _is_below(path, _SYSTEM) or _is_below(home, (path,)):
        return False
    return not path.startswith(f"{home.rstrip('/')}/.")


def _mounts(binds: dict[str, str]) -> list[str]:
    """Parents come before what is in them, so that nothing is covered. What is writable anyway is not mounted."""
    own = {path: "--tmpfs" for path in _OWN if os.path.realpath(path) == path and os.path.isdir(path)}
    shown = dict.fromkeys(_SHOWN, "--ro-bind-try")
    arguments: list[str] = []
    mounted: dict[str, str] = {}
    for path, how in sorted({**shown, **own, **binds}.items(), key=lambda one: one[0].split("/")):
        above = max((other for other in mounted if _is_below(path, (other,))), key=len, default=None)
        if above is not None and mounted[above].startswith("--bind") and how != "--tmpfs":
            continue
        mounted[path] = how
        arguments += [how, path] if how == "--tmpfs" else [how, path, path]
    return arguments


def _checked(cwd: str, path: str, secret: Sequence[str]) -> str:
    if not path:
        raise BadValue("writable: the name of a directory is empty", next="name a directory that exists")
    found = _real(os.path.join(cwd, path))
    if not os.path.isdir(found):
        what = "is not a directory" if os.path.lexists(found) else "does not exist"
        raise BadValue(f"writable: {path[:200]!r} {what}", next="name a directory that exists")
    if found == "/":
        raise BadValue("writable: / would be no sandbox", next="name the directories that it writes to")
    if _is_below(found, _KERNEL):
        raise BadValue(f"writable: {path[:200]!r} belongs to the kernel", next="run it without a sandbox")
    _refuse_hidden("writable", path, found, secret)
    return found


def _refuse_hidden(field: str, path: str, found: str, secret: Sequence[str]) -> None:
    if _is_below(found, secret):
        what = f"{field}: {path[:200]!r} belongs to holdfast, and is hidden in a sandbox"
        raise BadValue(what, next="name another directory")


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except ValueError as impossible:
        raise BadValue(f"{path[:200]!r} is no path", next="name a directory that exists") from impossible


def _is_below(path: str, directories: Iterable[str]) -> bool:
    """Whether it is one of them, or in one of them."""
    return any(path == directory or path.startswith(f"{directory}/") for directory in directories)
