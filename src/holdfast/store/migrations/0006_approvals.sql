-- What a person is asked before it is done, and what was answered. Rows that are over go when they are old.
-- `fingerprint` stands for exactly this command, directory and backend. `used_by`: whoever is about to use a `once`
-- approval, written before it is used; `spent_at`: it was. `asker`: whoever asked puts the question to a person itself.
CREATE TABLE approvals (
    id TEXT PRIMARY KEY NOT NULL,
    at REAL NOT NULL,
    session TEXT NOT NULL,
    backend TEXT NOT NULL,
    action TEXT NOT NULL,
    process TEXT NOT NULL,
    command TEXT NOT NULL,
    cwd TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    rule TEXT,
    why TEXT NOT NULL,
    asker INTEGER NOT NULL,
    state TEXT NOT NULL,
    scope TEXT,
    decided_by TEXT,
    decided_at REAL,
    reason TEXT,
    expires_at REAL,
    shown_at REAL,
    used_at REAL,
    used_by TEXT,
    spent_at REAL
) STRICT, WITHOUT ROWID;
-- Who decided what, and who touched what is not theirs. `entry` is a JSON object; `hash` is the SHA-256 of `prev`, which
-- is the hash of the entry before, and the entry. Rows are never changed and never go.
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    prev TEXT NOT NULL,
    hash TEXT NOT NULL,
    entry TEXT NOT NULL
) STRICT;
-- What was typed into a shell by those who are judged, where its line is not complete yet.
CREATE TABLE typed (
    process TEXT PRIMARY KEY NOT NULL,
    text TEXT NOT NULL
) STRICT, WITHOUT ROWID;
