-- One row per process. `meta` is what was asked for, `state` where its life stands, `marks` what was learned beside it;
-- all three are JSON objects that `processes.py` reads and writes. Output and environment are never in here.
CREATE TABLE processes (
    id TEXT PRIMARY KEY NOT NULL,
    session TEXT NOT NULL,
    meta TEXT NOT NULL,
    state TEXT NOT NULL,
    marks TEXT NOT NULL
) STRICT, WITHOUT ROWID;
