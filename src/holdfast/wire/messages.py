"""The words of the conversation: operations, their arguments and their answers.

A client asks `{"rid": n, "op": NAME, ...arguments}`; several may be under way on one connection. It is answered
`{"rid": n, "ok": {...}}` or `{"rid": n, "error": {"code", "message", "next", "data"}}`. An operation that streams sends
any number of `{"rid": n, "data": {"stream", "offset", "size"}}`, each followed by one `B` frame of that size,
before its `ok`. `{"op": "cancel", "rid": n}` gives an operation up; closing the connection gives all of them up.
The first message of a connection is `hello`.

PROCESS stands for an id, a unique prefix of it (4 hex digits or more) or a name. `process` answers are process
objects (PROCESS_FIELDS).

    hello        version, client, session, had: [id] (notices whose news it was told as answers before),
                 strict (only what belongs to the session is there)
                                                              -> version, daemon (its release), pid, strict
    start        id (chosen by the client, so that a retry after a cut link is the same start), labels (dict of texts), command or argv,
                 shell, cwd, env (the caller's), grant (dict of --env), umask, session, task, parent_session, name,
                 pty, cols, rows, stdin, split, lifetime, log_cap, deadline, deadline_action, if_running,
                 restart, restart_limit, restart_delay, success_codes, stop_cmd, attached (the caller is about to be, see there),
                 ready_log or ready_port or ready_http or ready_uptime, ready_timeout, stall, memory (bytes), cpus, pids,
                 notify ("any", "failure", "success", "never"), watch (texts), watch_regex, check_interval, origin (an object, given back),
                 fingerprint (of the request, where a key stands for it),
                 clean (secrets are left out of env unless granted by name; the notes name what was left out)
                 sudo (sudo in it asks for its password by askpass), gate (judge it first), asker (the caller asks a person itself), approval_wait (seconds)
                                                              -> process, notes: [str]
    foreground   as start; timeout (seconds from the start of the command), within (seconds from the request), characters and tokens
                 (of output that is shown), notices (at most so many): starts, then waits until it ends, asks for input, or the time
                 is over. Repeated with the same id it waits for the same process
                                                              -> process, notes, shown: {text (secrets masked), start, end, total, omitted,
                                                                 is_folded}, notifications (taken, to be acknowledged), consumes (as in wait)
    list         all, session, task, used (false: without asking what they use), limit, after (the `next` of the page before)
                                                              -> processes, next (null: this was the last page)
    inspect      process, seen (from an earlier answer), tree (true: with everyone in it)
                                                              -> process, seen, tree: [{pid, ppid, name, cpu_seconds, rss_bytes}] or null;
                                                                 or unchanged: true
    top          session, task, sort ("cpu", "memory", "started"), limit (rows, 0 for all), history (samples, at most 60)
                                                              -> processes: [TOP_FIELDS], total, cpu_percent, rss_bytes (of all)
    logs         process, stream ("out", "err"), from (byte offset) or lines (a number: the tail) or line (0-based) with lines,
                 bytes (at most), follow; with from: wait (seconds, for something beyond it, or beyond `beyond`);
                 consume (an owner who is shown the end of one that has ended is not told of it again: `consumes`, as in wait)
                                                              -> data…, then start, end, first (dropped before it), total, closed, process;
                                                                 with wait and nothing new: unchanged: true, start, end, first, total, closed, id, status
    search       process, stream, pattern, ignore_case, fixed, invert, count, before, after (lines), limit, from, line (its number),
                 upto, follow, wait (for followers)           -> matches: [{line, offset, end, match_offset, text, column, length, cut,
                                                                 before, after}], count, done, next: {from, line}, upto, start,
                                                                 searched, skipped, long_lines, first, total
    wait         processes, mode ("all", "any"), timeout, until ("exit", "output", "ready", "match"), after (offset for "output";
                 for "match" also {id: {stream: offset}}), match (pattern), ignore_case, consume (false: an end is only looked at),
                 or_input (a time; with "exit": also until one of them needs input, since later than that)
                                                              -> processes, done: [id], timed_out, waited, clamped_to (or null), matches: {id: match},
                                                                 consumes: [id] (notices whose news this is: the client says {"op": "got", "rid": n}
                                                                 when it has the answer, and nobody is told of them any more)
    kill         processes or session or task or all, signal (null: the ladder), grace
                                                              -> results: [{id, status, reason, forced, survivors, exit_code, signal, sent}]
    send         process, data (base64), enter, eof, at (offset or null), secret (refused where it would be shown, unless
                 even_if_echoed; not on a strict connection), asker, approval_wait (as with start, on a strict connection)
                                                              -> written, accepted, status ("sent" or "already_exited"), process
    resize       process, cols, rows                          -> {}
    restart      process, run (which run it is to be, so that a retry is the same restart; null: the next), grace,
                 asker, approval_wait (as with start, on a strict connection)
                                                              -> process
    screen       process, ansi                                -> screen: {id, lines, cursor: {row, col, visible}, cols, rows, title, alternate,
                                                                 at (how far the output was looked at), gap (output before it was left out, or null)}, process
    attached     process, from (byte offset or null: now)     -> {} when the process has ended; until then the caller's terminal answers its questions
    remove       processes                                    -> removed: [id]
    end_session  session, to (who gets what goes on; null: the session that its processes name as their parent), keep (nobody does)
                                                              -> results (as kill), passed: [{id, to}], left: [id], notifications: [id] (that are
                                                                 told to that session now)
    events       pattern, since (a number: what follows it), follow
                                                              -> data… (lines of JSON; `offset`: the number to go on from), then newest, oldest
    publish      topic, payload                               -> seq
    inbox        session, wait (seconds, for something), limit, take (keep it from other takers until ack or the end of the connection),
                 raw (true: secrets in what is quoted are not masked)
                                                              -> notifications: [NOTIFICATION_FIELDS], waited, clamped_to (or null)
    notices      session, take (until the end of this), window (so many that are not acknowledged at most)
                                                              -> data… (lines of JSON, a notification each; none: nothing is left now), for ever
    digest       session                                      -> text (for a model), processes (that run, with last_line), pending (notifications)
    ack          ids, session (only its own)                  -> acked: [id] (by this), known: [id] (before), unknown: [id]
    transfer     process, to (a session)                      -> process, notifications: [id] (that are told to the new owner now)
    rename_session  from, to                                  -> processes: [id], notifications: [id]
    sinks        -                                            -> sinks: [{name, way, to, state ("ok", "quiet", "failing", "off", "gone"), enabled, kinds,
                                                                 sessions, outcomes, quiet, tries, pending, dead, next_at, sent, failed, last_sent_at,
                                                                 last_error, last_error_at}], config (the file), trouble (why it is not followed, or null)
    sink_test    name (null: all)                             -> results: [{sink, sent, error, took}]
    sink_dead    limit                                        -> dead: [{id, sink, notification, kind, process, session, at, attempts, error, dead_at}]
    sink_retry   ids (numbers) or all                         -> retried: [id], unknown: [id]
    sessions     -                                            -> sessions: [{session, running, ended, first_at, last_at, pending}]
    http         what ("tell", "open", "shut"), listen (with open: a loopback address and port)
                                                              -> url (null: shut), token_file, socket
    redact       texts                                        -> texts (each with its secrets masked, as for a model)
    approvals    all, session, follow                         -> approvals: [object]; with follow data… (lines of JSON: the pending ones, then each
                                                                 that changes), and whoever follows shows them to a person
    approve      id, scope ("once", "session", "always"), by  -> approval
    deny         id, by                                       -> approval
    approval_shown  id                                        -> {} (a person can see it)
    approval_password  id, data (base64), by                 -> approval (of sudo: what a person typed; not on a strict connection)
    askpass      - (from a helper of sudo)                     -> password (base64)
    audit        after (a number), limit, verify              -> entries: [object], verified: {entries, head, fault, seq} (with verify)
    status       -                                            -> pid, keeper_pid, anchor_pid, version, home, processes, …
    doctor       -                                            -> checks: [{name, ok, detail, degrades}]
    stop         -                                            -> ended: [id], left: [id]
"""

from __future__ import annotations

VERSION = 1

TOP_FIELDS = (
    *("id", "name", "status", "session", "task", "pid", "started_at", "command", "limits"),
    *("cpu_percent", "cpu_seconds", "rss_bytes", "peak_rss_bytes", "ports"),
    "history",  # lists as long as each other, oldest first: ago (seconds), cpu_percent, rss_bytes
)

NOTIFICATION_FIELDS = (
    *("id", "key", "kind", "process", "session", "origin", "at", "text", "data"),
    "source",  # always "system": whatever it quotes, no user said it
    "summary",  # one line for people; `text` is for models
)

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
    "labels",  # texts by key, as noted by whoever started it
    "killed_by",  # the session that asked for the end; null when nobody did
    "forced",  # whether the end had to be forced; null when nobody asked for it
    "exit_offset",  # where the output stood at the exit; what lies behind it was written by descendants
    "stale",  # running for longer than the configured age
    "trouble",  # what keeps it from going on as usual (a full disk, a quarantine); null mostly
    "ready_at",  # since when it is ready, or was until it ended; null when it never was
    "ready_trouble",  # what keeps it from being ready, as far as that can be seen; null mostly
    "stalled",  # no output and no use of the processor for as long as `stall` says
    "stall_data",  # since, last_output_at, wait (what its main thread waits for); null unless stalled
    "needs_input",  # since, prompt, secret (what is typed is not shown); null unless it waits for an answer
    "watch_data",  # disabled, matches, suppressed (not told at once), told (notifications); null without a watch
    "split",
    "cols",
    "rows",
    "restart",  # its policy: never, on-failure, always
    "restart_at",  # between two runs: when the next is due; null otherwise
    "gave_up",  # ended, because it would have had to be run again too often in a row
    "limits",  # what it may use at most: memory (bytes), cpus, pids, those that were given; null without any
    "peak_rss_bytes",  # the most memory that it was seen to use
)
