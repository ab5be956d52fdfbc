"""How often and how large."""

from __future__ import annotations

from typing import NamedTuple


class Scale(NamedTuple):
    rounds: int
    """Of the measures that take milliseconds."""
    pause: float
    """Seconds before a lone start."""
    bursts: int
    burst: int
    """Calls back to back in each of them."""
    flood_bytes: int
    flood_rounds: int
    held: int
    held_rounds: int
    idle_seconds: float
    listed: int
    list_rounds: int
    screen_bytes: int
    kills: int
    followers: int
    follow_seconds: float
    notices: int
    notice_sessions: int
    job_speed: float
    """How many times as fast as it would be the job of half an hour runs."""
    page_bytes: int
    """Of the log that the dashboard opens."""
    page_opens: int
    page_seconds: float
    """For how long the dashboard follows."""
    page_processes: int
    page_keys: int
    page_judged: int


FULL = Scale(
    rounds=100,
    pause=0.3,
    bursts=30,
    burst=25,
    flood_bytes=1 << 30,
    flood_rounds=5,
    held=1000,
    held_rounds=3,
    idle_seconds=20.0,
    listed=100,
    list_rounds=30,
    screen_bytes=100_000_000,
    kills=1000,
    followers=100,
    follow_seconds=5.0,
    notices=10_000,
    notice_sessions=100,
    job_speed=100.0,
    page_bytes=10_000_000_000,
    page_opens=40,
    page_seconds=60.0,
    page_processes=5000,
    page_keys=200,
    page_judged=3,
)

#: Says that the benchmarks work, and nothing about speed.
QUICK = Scale(
    rounds=3,
    pause=0.0,
    bursts=2,
    burst=3,
    flood_bytes=16 << 20,
    flood_rounds=1,
    held=20,
    held_rounds=1,
    idle_seconds=0.5,
    listed=5,
    list_rounds=2,
    screen_bytes=1_000_000,
    kills=4,
    followers=5,
    follow_seconds=0.5,
    notices=60,
    notice_sessions=6,
    job_speed=2000.0,
    page_bytes=20_000_000,
    page_opens=4,
    page_seconds=1.0,
    page_processes=20,
    page_keys=5,
    page_judged=1,
)
