-- What sessions are told, in the order in which it was written, each in the transaction of the change that it tells of.
-- `key` is the same for the same news, so that nothing is written twice; `body` is a JSON object (origin, data).
-- `claim`: whoever is being given it as the answer to a question; it is told to nobody else meanwhile.
CREATE TABLE inbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    key TEXT NOT NULL UNIQUE,
    session TEXT NOT NULL,
    process TEXT,
    kind TEXT NOT NULL,
    at REAL NOT NULL,
    body TEXT NOT NULL,
    claim TEXT,
    acked_at REAL,
    acked_by TEXT
) STRICT;
CREATE INDEX inbox_pending ON inbox (seq) WHERE acked_at IS NULL;
CREATE INDEX inbox_acked ON inbox (acked_at) WHERE acked_at IS NOT NULL;
-- Sessions that have another name now.
CREATE TABLE aliases (
    name TEXT PRIMARY KEY NOT NULL,
    now TEXT NOT NULL,
    at REAL NOT NULL
) STRICT, WITHOUT ROWID;
-- Small facts about the instance as a whole, JSON each.
CREATE TABLE memory (
    name TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
