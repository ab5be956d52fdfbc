"""The files of an instance."""

from __future__ import annotations

import os
import stat

from holdfast.errors import Denied, HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Paths:
    """The files of one instance."""

    __slots__ = ("home", "runtime")

    def __init__(self, home: str, runtime: str) -> None:
        self.home = home
        #: Where the socket is: the home itself, or a directory of the session where the system offers one.
        self.runtime = runtime

    def __repr__(self) -> str:
        return f"Paths(home={self.home!r}, runtime={self.runtime!r})"

    @property
    def socket(self) -> str:
        return f"{self.runtime}/daemon.sock"

    @property
    def store(self) -> str:
        return f"{self.home}/store.db"

    @property
    def replies(self) -> str:
        """Notices that replies deliver, for as long as the store does not have that."""
        return f"{self.home}/replies"

    @property
    def place(self) -> str:
        """The directory of the keeper of this machine."""
        return f"{self.home}/place"

    @property
    def log(self) -> str:
        return f"{self.home}/daemon.log"

    @property
    def daemon_lock(self) -> str:
        """Locked by the daemon for as long as it lives."""
        return f"{self.home}/daemon.lock"

    @property
    def start_lock(self) -> str:
        """Locked by the client that is starting a daemon."""
        return f"{self.home}/start.lock"

    @property
    def login_env(self) -> str:
        return f"{self.home}/login-env.json"

    @property
    def hooks(self) -> str:
        """Commands of the owner that run on events."""
        return f"{self.home}/hooks"

    @property
    def hook_places(self) -> str:
        """Up to which event each hook has run."""
        return f"{self.home}/hook-places"

    @property
    def screens(self) -> str:
        """What the daemon keeps of terminals."""
        return f"{self.home}/screens"

    @property
    def token(self) -> str:
        """The token that a client on TCP must send."""
        return f"{self.home}/token"

    @property
    def publish_token(self) -> str:
        """The token with which a client on TCP can publish events, and nothing else."""
        return f"{self.home}/publish-token"

    @property
    def https_listen(self) -> str:
        """The address beyond loopback, and the certificate, that the operation `dashboard` set."""
        return f"{self.home}/https-listen.json"

    @property
    def http_listen(self) -> str:
        """The address that the operation `http` set."""
        return f"{self.home}/http-listen"

    @property
    def dashboard_access(self) -> str:
        """Links to the dashboard and its sessions, as hashes."""
        return f"{self.home}/dashboard-access.json"

    @property
    def dashboard(self) -> str:
        """Plugins and themes of the dashboard."""
        return f"{self.home}/dashboard"

    @property
    def closed_terminals(self) -> str:
        """A file for each foreground process whose terminal was closed, until the user is informed."""
        return f"{self.home}/closed-terminals"

    @property
    def config(self) -> str:
        return f"{self.home}/config.toml"


def find_paths(environ: Mapping[str, str] | None = None) -> Paths:
    """The instance that the environment names; its directories are not made yet."""
    env = os.environ if environ is None else environ
    named = env.get("HOLDFAST_HOME")
    if named:
        home = os.path.abspath(os.path.expanduser(named))
        return Paths(home, home)
    state = env.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    home = os.path.join(state, "holdfast")
    session_dir = env.get("XDG_RUNTIME_DIR")
    return Paths(home, os.path.join(session_dir, "holdfast") if session_dir else home)


def make_directories(paths: Paths) -> None:
    """Make the instance's directories, for its owner alone. Raises Denied when others could have put files there."""
    for directory in {paths.home, paths.runtime}:
        try:
            os.makedirs(directory, mode=0o700, exist_ok=True)
            found = os.stat(directory)
        except OSError as refused:
            raise HoldfastError(
                f"cannot use {directory}: {refused.strerror}", next="set HOLDFAST_HOME to a directory of your own"
            ) from refused
        if found.st_uid != os.geteuid():
            raise Denied(f"{directory} belongs to another user")
        check_private(directory)
        if stat.S_IMODE(found.st_mode) & 0o077:
            os.chmod(directory, 0o700)
        for name in os.listdir(directory):
            check_private(f"{directory}/{name}")


def check_private(path: str) -> None:
    """Raises Denied when a user other than us and root owns the file, or could write it; also for the target of a
    link. A missing file is no error.
    """
    for each in (path, os.path.realpath(path)):
        try:
            found = os.lstat(each)
        except FileNotFoundError:
            return
        _check_private(each, found)


def check_private_tree(directory: str) -> None:
    """`check_private` for a directory and everything below it. Raises Denied, and OSError where it cannot be read."""
    check_private(directory)
    directories = [directory]
    while directories:
        with os.scandir(directories.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    check_private(entry.path)
                    continue
                try:
                    found = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # it was removed just now
                _check_private(entry.path, found)
                if entry.is_dir(follow_symlinks=False):
                    directories.append(entry.path)


def _check_private(path: str, found: os.stat_result) -> None:
    is_file = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    if found.st_uid not in (os.geteuid(), 0):
        raise _not_private(f"{path} belongs to another user (uid {found.st_uid})", f"chown {os.geteuid()}", path)
    if is_file and found.st_mode & 0o022:
        raise _not_private(f"{path} can be written by other users", "chmod go-w", path)


def _not_private(what: str, repair: str, path: str) -> Denied:
    from shlex import quote

    return Denied(what, next=f"remove it, or check its content and: {repair} {quote(path)}")
