"""Commands of the owner that run when something happens: `description` (what a hook says of itself), `run` (one
event, one run) and `follow` (every hook follows the stream of events from a place of its own)."""
