-- What is on its way to the outside: a row for each sink that wants a notice, written in the transaction of the notice
-- and gone when it was sent. `body` is the notification as a JSON object. A row with `dead_at` was given up.
CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    sink TEXT NOT NULL,
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    at REAL NOT NULL,
    due_at REAL NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    dead_at REAL,
    UNIQUE (sink, key)
) STRICT;
CREATE INDEX outbox_due ON outbox (sink, due_at, seq) WHERE dead_at IS NULL;
-- What each sink did so far.
CREATE TABLE sinks (
    name TEXT PRIMARY KEY NOT NULL,
    sent INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    last_sent_at REAL,
    last_error TEXT,
    last_error_at REAL
) STRICT, WITHOUT ROWID;
