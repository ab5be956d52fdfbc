-- Up to which of its numbers each bridge has brought its events: what comes again is not written again. Written in the
-- transaction of the event. Rows go when a bridge was quiet for as long as events are kept.
CREATE TABLE bridges (
    id TEXT PRIMARY KEY,
    n INTEGER NOT NULL,
    at REAL NOT NULL
) STRICT;
