/**
 * What the log shows: a window of bytes around an anchor, or the end of the log while it is followed.
 *
 * Following asks for what was written since, at most ten times a second. Of more than a screen can show only the end is
 * read; the rest is counted.
 */
import { useCallback, useEffect, useRef, useState } from "react";
import { sentenceOf } from "../../../api/problem";
import { CHUNK, LogBytes } from "./bytes";
import { lineAt, windowOf, type LogWindow } from "./lines";

const TICK = 100;
const POLL = 20;
const TAIL = 2 * CHUNK;
const RETRY = 1000;

export interface LogPosition {
  /** The first byte of the line at the top. */
  offset: number;
  /** How many pixels of that line are above the top. */
  pixels: number;
}

export interface Log {
  window: LogWindow | null;
  position: LogPosition;
  isFollowing: boolean;
  isLoading: boolean;
  skipped: number;
  /** Bytes that were written since it is not followed. */
  unseen: number;
  total: number;
  dropped: number;
  error: string | null;
  /** Shows the line of this byte, with some lines above it. */
  goTo(offset: number, above?: number): void;
  moveTo(position: LogPosition): void;
  follow(isFollowing: boolean): void;
}

export function useLog(id: string, stream: string, isLive: boolean, at: number | null): Log {
  const bytes = useRef(new LogBytes(id, stream));
  const [window, setWindow] = useState<LogWindow | null>(null);
  const [position, setPosition] = useState<LogPosition>({ offset: at ?? 0, pixels: 0 });
  const [isFollowing, setFollowing] = useState(at === null);
  const [isLoading, setLoading] = useState(true);
  const [extent, setExtent] = useState({ total: 0, dropped: 0 });
  const [skipped, setSkipped] = useState(0);
  const [seen, setSeen] = useState(0);
  const [error, setError] = useState<string | null>(null);
  const loading = useRef<AbortController | null>(null);

  const load = useCallback(async (from: number, to: number): Promise<LogWindow | null> => {
    loading.current?.abort();
    const mine = (loading.current = new AbortController());
    const late = setTimeout(() => setLoading(true), TICK);
    try {
      const found = windowOf(await bytes.current.window(from, to, mine.signal));
      if (mine.signal.aborted) return null;
      setWindow(found);
      setExtent({ total: found.total, dropped: found.dropped });
      setError(null);
      setLoading(false);
      return found;
    } catch (failed) {
      if (!mine.signal.aborted) {
        setError(sentenceOf(failed));
        setLoading(false);
      }
      return null;
    } finally {
      clearTimeout(late);
    }
  }, []);

  const wanted = useRef<{ offset: number; above: number } | null>(null);
  const isGoing = useRef(false);

  // While one is read, only the last of those that were asked for meanwhile is kept: dragging never waits for all.
  const goTo = useCallback(
    (offset: number, above = 0) => {
      wanted.current = { offset, above };
      if (isGoing.current) return;
      isGoing.current = true;
      void (async () => {
        while (wanted.current !== null) {
          const goal = wanted.current;
          wanted.current = null;
          const { dropped, total } = bytes.current;
          const byte = Math.max(dropped, Math.min(goal.offset, Math.max(0, total - 1)));
          const found = await load(byte - CHUNK, byte + 2 * CHUNK);
          if (found === null) continue;
          const line = found.lines[Math.max(0, lineAt(found, byte) - goal.above)];
          setFollowing(false);
          setSeen(total);
          setPosition({ offset: line?.start ?? byte, pixels: 0 });
        }
        isGoing.current = false;
      })();
    },
    [load],
  );

  /** Within the window; near its edge the next window is read. */
  const moveTo = useCallback(
    (next: LogPosition) => {
      setPosition(next);
      if (window === null) return;
      const isLow = !window.isAtStart && next.offset - window.start < CHUNK / 2;
      const isHigh = !window.isAtEnd && window.end - next.offset < CHUNK;
      if (isLow || isHigh) void load(next.offset - CHUNK, next.offset + 2 * CHUNK);
    },
    [window, load],
  );

  const follow = useCallback((next: boolean) => {
    setFollowing(next);
    setSeen(bytes.current.total);
    if (next) loading.current?.abort();
  }, []);

  // The first page, and everything that comes.
  useEffect(() => {
    const stop = new AbortController();
    const log = bytes.current;
    const showEnd = async () => {
      const found = windowOf(await log.window(log.total - TAIL, log.total, stop.signal));
      setWindow(found);
      setLoading(false);
    };
    const run = async () => {
      let from = log.total;
      if (window === null || isFollowing) {
        const ahead = isFollowing || at === null ? null : log.prefetch(at, stop.signal);
        await Promise.all([log.next(0, 0, 0, stop.signal), ahead]);
        from = log.total;
        setExtent({ total: log.total, dropped: log.dropped });
        if (isFollowing) await showEnd();
        else if (at !== null) goTo(at, 5);
        setError(null);
      }
      while (isLive && !stop.signal.aborted) {
        const begun = performance.now();
        const piece = await log.next(from, isFollowing ? CHUNK : 0, POLL, stop.signal);
        if (piece.data.length) log.append(piece.start, piece.data);
        if (piece.total > from) {
          if (isFollowing) {
            const missed = piece.total - TAIL - (piece.start + piece.data.length);
            if (missed > 0) setSkipped((value) => value + missed);
            await showEnd();
          }
          from = piece.total;
        }
        setExtent({ total: log.total, dropped: log.dropped });
        setError(null);
        const rest = TICK - (performance.now() - begun);
        if (rest > 0) await new Promise((resolve) => setTimeout(resolve, rest));
      }
    };
    const again = () => {
      run().catch((failed: unknown) => {
        if (stop.signal.aborted) return;
        setError(sentenceOf(failed));
        setLoading(false);
        setTimeout(() => !stop.signal.aborted && again(), RETRY);
      });
    };
    again();
    return () => stop.abort();
    // The loop begins anew when it changes what it does; the window is its result.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [id, stream, isLive, isFollowing]);

  useEffect(() => () => loading.current?.abort(), []);

  return {
    window,
    position,
    isFollowing,
    isLoading,
    skipped,
    unseen: isFollowing ? 0 : Math.max(0, extent.total - seen),
    ...extent,
    error,
    goTo,
    moveTo,
    follow,
  };
}
