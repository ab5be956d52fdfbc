/** Search on the server, a part of the log at a time, so that hits and progress show early. */
import { useCallback, useEffect, useRef, useState } from "react";
import { search } from "../../../api/operations";
import { sentenceOf } from "../../../api/problem";

/** Bytes that one request searches. */
const STEP = 256 * 1024 * 1024;
const PAGE = 1000;
/** Hits that are kept to jump to; all are counted. */
const MOST = 20_000;

export interface FindQuery {
  pattern: string;
  isRegex: boolean;
  ignoresCase: boolean;
}

export interface Found {
  query: FindQuery;
  hits: number[];
  count: number;
  /** 0 to 1. */
  progress: number;
  isDone: boolean;
  error: string | null;
}

export function useFind(id: string, stream: string) {
  const [found, setFound] = useState<Found | null>(null);
  const running = useRef<AbortController | null>(null);

  const find = useCallback(
    async (query: FindQuery, dropped: number, total: number) => {
      running.current?.abort();
      if (!query.pattern) return setFound(null);
      const mine = (running.current = new AbortController());
      const state: Found = { query, hits: [], count: 0, progress: 0, isDone: false, error: null };
      setFound(state);
      try {
        let from = dropped;
        while (from < total) {
          const upto = Math.min(total, from + STEP);
          const page = await search(
            id,
            { pattern: query.pattern, fixed: !query.isRegex, ignore_case: query.ignoresCase, stream, from, upto, limit: PAGE },
            mine.signal,
          );
          if (mine.signal.aborted) return;
          state.count += page.matches.length;
          for (const match of page.matches) if (state.hits.length < MOST) state.hits.push(match.offset);
          const next = page.next.from ?? upto;
          from = page.matches.length === PAGE ? next : Math.max(next, upto);
          state.progress = Math.min(1, (from - dropped) / Math.max(1, total - dropped));
          setFound({ ...state });
        }
        setFound({ ...state, progress: 1, isDone: true });
      } catch (failed) {
        if (!mine.signal.aborted) setFound({ ...state, isDone: true, error: sentenceOf(failed) });
      }
    },
    [id, stream],
  );

  const clear = useCallback(() => {
    running.current?.abort();
    setFound(null);
  }, []);
  useEffect(() => clear, [clear]);
  return { found, find, clear };
}

/** The marker of hits within a text, in the way the query asks; null where the browser cannot do that. */
export function markerOf(query: FindQuery | undefined): RegExp | null {
  if (!query?.pattern) return null;
  const source = query.isRegex ? query.pattern : query.pattern.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  try {
    return new RegExp(source, query.ignoresCase ? "gi" : "g");
  } catch {
    return null;
  }
}
