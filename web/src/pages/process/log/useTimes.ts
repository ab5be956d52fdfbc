/** When the lines of a window were written. */
import { useEffect, useState } from "react";
import { logTimes } from "../../../api/operations";
import type { TimeEntry } from "../../../api/types";

export function useTimes(id: string, stream: string, from: number, to: number, isWanted: boolean) {
  const [times, setTimes] = useState<TimeEntry[]>([]);
  useEffect(() => {
    if (!isWanted || to <= from) return;
    const stop = new AbortController();
    logTimes(id, stream, from, to, stop.signal)
      .then((found) => setTimes(found.times))
      .catch(() => undefined);
    return () => stop.abort();
  }, [id, stream, from, to, isWanted]);
  return (offset: number): number | null => {
    let low = 0;
    let high = times.length - 1;
    if (high < 0 || times[0]!.offset > offset) return null;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (times[middle]!.offset <= offset) low = middle;
      else high = middle - 1;
    }
    return times[low]!.time;
  };
}
