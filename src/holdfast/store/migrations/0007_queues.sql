-- Queues that were used or changed. `slots` is how many of its processes run at once.
CREATE TABLE queues (
    name TEXT PRIMARY KEY NOT NULL,
    slots INTEGER NOT NULL,
    paused INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- Starts that wait for their turn, in the order of `seq`. `launch` is what the keeper is to be given, as JSON. A row goes
-- when its process was started, or will not be.
CREATE TABLE queued (
    seq INTEGER PRIMARY KEY,
    process TEXT UNIQUE NOT NULL,
    launch TEXT NOT NULL
) STRICT;
