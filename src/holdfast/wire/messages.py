"""The words of the conversation: operations, their arguments and their answers.

A client asks `{"rid": n, "op": NAME, ...arguments}`; several may be under way on one connection. It is answered
`{"rid": n, "ok": {...}}` or `{"rid": n, "error": {"code", "message", "next"}}`. An operation that streams sends
any number of `{"rid": n, "data": {"stream", "offset", "size"}}`, each followed by one `B` frame of that size,
before its `ok`. `{"op": "cancel", "rid": n}` gives an operation up; closing the connection gives all of them up.
The first message of a connection is `hello`.

PROCESS stands for an id, a unique prefix of it (4 hex digits or more) or a name. `process` answers are process
objects (PROCESS_FIELDS).

    hello        version, client, session                     -> version, daemon (its release), pid
    start        id (chosen by the client, so that a retry after a cut link is the same start), command or argv,
                 shell, cwd, env (the caller's), grant (dict of --env), umask, session, task, parent_session, name,
                 pty, cols, rows, stdin, split, lifetime, log_cap, deadline, deadline_action, if_running,
                 fingerprint (of the request, where a key stands for it)
                                                              -> process, notes: [str]
    list         all, session, task, limit, after (the `next` of the page before)
                                                              -> processes, next (null: this was the last page)
    inspect      process                                      -> process
    logs         process, stream ("out", "err"), from (byte offset) or lines (a number: the tail) or line (0-based) with lines,
                 bytes (at most), follow
                                                              -> data…, then start, end, first (dropped before it), total, closed, process
    wait         processes, mode ("all", "any"), timeout, until ("exit", "output"), after (offset for "output")
                                                              -> processes, done: [id], timed_out, waited, clamped_to (or null)
    kill         processes or session or task or all, signal (null: the ladder), grace
                                                              -> results: [{id, status, reason, forced, survivors, exit_code, signal, sent}]
    send         process, data (base64), enter, eof, at (offset or null)
                                                              -> written, accepted, status ("sent" or "already_exited"), process
    resize       process, cols, rows                          -> {}
    remove       processes                                    -> removed: [id]
    end_session  session                                      -> results (as kill), left: [id]
    sessions     -                                            -> sessions: [{session, running, ended, first_at, last_at}]
    http         what ("tell", "open", "shut"), listen (with open: a loopback address and port)
                                                              -> url (null: shut), token_file, socket
    status       -                                            -> pid, keeper_pid, anchor_pid, version, home, processes, …
    doctor       -                                            -> checks: [{name, ok, detail, degrades}]
    stop         -                                            -> ended: [id], left: [id]
"""

from __future__ import annotations

VERSION = 1

PROCESS_FIELDS = (
    "id",
    "name",
    "command",
    "argv",
    "cwd",
    "session",
    "task",
    "backend",
    "pid",
    "status",
    "reason",
    "exit_code",
    "signal",
    "started_at",
    "ended_at",
    "ready",
    "output_bytes",
    "dropped_bytes",
    "log_cap",
    "lifetime",
    "notify",
    "watch",
    "pty",
    "stdin_open",
    "deadline_at",
    "leftover_pids",
    "restarts",
    "ports",
    "cpu_seconds",
    "rss_bytes",
    # beyond the contract
    "killed_by",  # the session that asked for the end; null when nobody did
    "forced",  # whether the end had to be forced; null when nobody asked for it
    "exit_offset",  # where the output stood at the exit; what lies behind it was written by descendants
    "stale",  # running for longer than the configured age
    "trouble",  # what keeps it from going on as usual (a full disk, a quarantine); null mostly
    "split",
    "cols",
    "rows",
)
