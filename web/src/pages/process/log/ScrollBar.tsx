/** The scroll bar of the whole log, by byte, with the hits of a search on it. */
import { useMemo, useRef } from "react";
import { count, size } from "../../../model/format";

const BUCKETS = 300;

interface ScrollBarProps {
  from: number;
  to: number;
  total: number;
  dropped: number;
  hits: number[];
  onGo(offset: number): void;
  onEnd(): void;
}

export function ScrollBar({ from, to, total, dropped, hits, onGo, onEnd }: ScrollBarProps) {
  const bar = useRef<HTMLDivElement>(null);
  const length = Math.max(1, total - dropped);
  const part = Math.max(0.02, Math.min(1, (to - from) / length));
  const place = Math.min(1, Math.max(0, (from - dropped) / Math.max(1, length - (to - from))));
  const marks = useMemo(() => {
    const filled = new Set<number>();
    for (const hit of hits) filled.add(Math.floor(((hit - dropped) / length) * BUCKETS));
    return [...filled];
  }, [hits, hits.length, dropped, length]);

  const drag = (event: React.PointerEvent) => {
    if (event.buttons !== 1 || bar.current === null) return;
    const box = bar.current.getBoundingClientRect();
    const fraction = Math.min(1, Math.max(0, (event.clientY - box.top) / box.height));
    if (fraction > 0.995) onEnd();
    else onGo(Math.floor(dropped + fraction * length));
  };
  const key = (event: React.KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowDown: 0.01, ArrowUp: -0.01, PageDown: 0.1, PageUp: -0.1 };
    const step = steps[event.key];
    if (step !== undefined) onGo(Math.floor(from + step * length));
    else if (event.key === "Home") onGo(dropped);
    else if (event.key === "End") onEnd();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      ref={bar}
      className="log-bar"
      role="scrollbar"
      tabIndex={0}
      aria-label="Position in the log"
      aria-controls="log-view"
      aria-orientation="vertical"
      aria-valuemin={dropped}
      aria-valuemax={total}
      aria-valuenow={from}
      aria-valuetext={`byte ${count(from)} of ${size(total)}`}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        drag(event);
      }}
      onPointerMove={drag}
      onKeyDown={key}
    >
      <div className="log-thumb" style={{ height: `${part * 100}%`, top: `${place * (1 - part) * 100}%` }} />
      {marks.map((mark) => (
        <div key={mark} className="log-hit" style={{ top: `${(100 * mark) / BUCKETS}%` }} />
      ))}
    </div>
  );
}
