-- What happened, numbered in the order in which it was written. A number is never given twice. `envelope` is a JSON
-- object. Rows go when they are old; nothing but the newest number is needed to go on.
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    envelope TEXT NOT NULL
) STRICT;
CREATE INDEX events_at ON events (at);
