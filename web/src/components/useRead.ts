/** Reads something, and again when a key changes; what was read before stays until then. */
import { useCallback, useEffect, useState } from "react";
import { sentenceOf } from "../api/problem";

export interface Read<T> {
  value: T | null;
  error: string | null;
  again(): void;
}

export function useRead<T>(read: (signal: AbortSignal) => Promise<T>, key: unknown = 0, every = 0): Read<T> {
  const [value, setValue] = useState<T | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [turn, setTurn] = useState(0);
  const again = useCallback(() => setTurn((now) => now + 1), []);
  useEffect(() => {
    const stop = new AbortController();
    read(stop.signal).then(
      (found) => {
        if (stop.signal.aborted) return;
        setValue(found);
        setError(null);
      },
      (failed: unknown) => !stop.signal.aborted && setError(sentenceOf(failed)),
    );
    return () => stop.abort();
    // The function is another one at every call; the key says when it reads something else.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [key, turn]);
  useEffect(() => {
    if (!every) return;
    const timer = setInterval(() => !document.hidden && again(), every);
    return () => clearInterval(timer);
  }, [every, again]);
  return { value, error, again };
}
