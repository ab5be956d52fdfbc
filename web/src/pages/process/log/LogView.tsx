/** The lines on the screen, and moving through them by wheel, finger and keys. */
import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";
import { LogRow } from "./LogLines";
import { lineAt, textOf } from "./lines";
import type { Log } from "./useLog";

const LINE = 19;

export interface LogViewHandle {
  scrollBy(pixels: number): void;
  page(direction: number): void;
}

interface LogViewProps {
  log: Log;
  isWrapped: boolean;
  isRaw: boolean;
  showsTime: boolean;
  timeOf(offset: number): number | null;
  marker: RegExp | null;
  markedAt: number | null;
  onLink(start: number): void;
  handle: RefObject<LogViewHandle | null>;
  onRange(from: number, to: number): void;
}

export function LogView(props: LogViewProps) {
  const { log, isWrapped, isRaw, showsTime, timeOf, marker, markedAt, onLink, handle, onRange } = props;
  const view = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const [height, setHeight] = useState(600);
  const { window, position, isFollowing } = log;

  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setHeight(view.current?.clientHeight ?? 600));
    observer.observe(view.current!);
    return () => observer.disconnect();
  }, []);

  const count = Math.ceil(height / LINE) + 1;
  const lines = window?.lines ?? [];
  const anchor = window ? (isFollowing ? lines.length - 1 : lineAt(window, position.offset)) : 0;
  const first = isFollowing ? Math.max(0, lines.length - count) : Math.max(0, anchor - count);
  const last = isFollowing ? lines.length : Math.min(lines.length, anchor + 2 * count);
  const shown = lines.slice(first, last);

  // While it is not followed, the anchor's line is at the top.
  useLayoutEffect(() => {
    const box = inner.current;
    if (!box) return;
    if (isFollowing) {
      box.style.transform = "";
    } else {
      const row = box.children[anchor - first] as HTMLElement | undefined;
      box.style.transform = `translateY(${-((row?.offsetTop ?? 0) + position.pixels)}px)`;
    }
    reportRange(view.current, box, onRange);
  });

  const scrollBy = useCallback(
    (pixels: number) => {
      const box = inner.current;
      const frame = view.current;
      if (!box || !frame || !window || !box.children.length) return;
      const rows = [...box.children] as HTMLElement[];
      const top = frame.getBoundingClientRect().top;
      const offsetOf = (row: HTMLElement) => row.getBoundingClientRect().top - top;
      if (isFollowing && pixels >= 0) return;
      // The row at the top after the move, measured, because lines that wrap differ in height.
      let index = rows.findIndex((row) => offsetOf(row) + row.offsetHeight - pixels > 0);
      if (index < 0) index = rows.length - 1;
      const row = rows[index]!;
      const start = Number(row.dataset.start);
      let rest = Math.max(0, pixels - offsetOf(row));
      if (pixels < 0 && index === 0 && first === 0 && window.isAtStart && offsetOf(row) - pixels >= 0) rest = 0;
      const lastRow = rows.at(-1)!;
      const isLastShown = last === lines.length && window.isAtEnd;
      const bottom = offsetOf(lastRow) + lastRow.offsetHeight - pixels;
      if (pixels > 0 && isLastShown && bottom <= frame.clientHeight) return log.follow(true);
      if (isFollowing) log.follow(false);
      log.moveTo({ offset: start, pixels: rest });
    },
    [window, isFollowing, first, last, lines.length, log],
  );

  handle.current = { scrollBy, page: (direction) => scrollBy(direction * (height - 2 * LINE)) };
  useGestures(view, scrollBy);

  return (
    <div
      id="log-view"
      ref={view}
      className={`log-view${isWrapped ? " is-wrapped" : ""}${isFollowing ? " is-following" : ""}${log.isLoading ? " is-loading" : ""}`}
      role="region"
      aria-label="Output"
      tabIndex={0}
    >
      <div ref={inner} className={showsTime ? "log-lines has-time" : "log-lines"}>
        {window &&
          shown.map((line) => (
            <LogRow
              key={line.start}
              start={line.start}
              text={textOf(window, line)}
              time={showsTime ? timeOf(line.start) : null}
              showsTime={showsTime}
              isRaw={isRaw}
              isMarked={markedAt !== null && line.start <= markedAt && markedAt < line.end}
              marker={marker}
              onLink={onLink}
            />
          ))}
      </div>
    </div>
  );
}

function reportRange(view: HTMLElement | null, box: HTMLElement, onRange: (from: number, to: number) => void): void {
  if (!view || !box.children.length) return;
  const { top, bottom } = view.getBoundingClientRect();
  let from: number | null = null;
  let to = 0;
  for (const row of box.children as Iterable<Element> & HTMLCollection) {
    const place = row.getBoundingClientRect();
    if (place.bottom <= top || place.top >= bottom) continue;
    const start = Number((row as HTMLElement).dataset.start);
    from ??= start;
    to = start;
  }
  if (from !== null) onRange(from, to);
}

/** Wheel and touch, with the momentum of a flick. */
function useGestures(view: RefObject<HTMLDivElement | null>, scrollBy: (pixels: number) => void): void {
  const move = useRef(scrollBy);
  move.current = scrollBy;
  useEffect(() => {
    const element = view.current!;
    let pending = 0;
    let frame = 0;
    const add = (pixels: number) => {
      pending += pixels;
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        const now = pending;
        pending = 0;
        move.current(now);
      });
    };
    const onWheel = (event: WheelEvent) => {
      if (event.ctrlKey) return;
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
      event.preventDefault();
      add(event.deltaMode === 1 ? event.deltaY * LINE * 3 : event.deltaY);
    };
    let lastY = 0;
    let speed = 0;
    let lastTime = 0;
    let glide = 0;
    const onStart = (event: TouchEvent) => {
      cancelAnimationFrame(glide);
      lastY = event.touches[0]!.clientY;
      lastTime = event.timeStamp;
      speed = 0;
    };
    const onMove = (event: TouchEvent) => {
      if (event.touches.length !== 1) return;
      event.preventDefault();
      const y = event.touches[0]!.clientY;
      speed = (lastY - y) / Math.max(1, event.timeStamp - lastTime);
      add(lastY - y);
      lastY = y;
      lastTime = event.timeStamp;
    };
    const onEnd = () => {
      const step = () => {
        if (Math.abs(speed) < 0.05) return;
        add(speed * 16);
        speed *= 0.95;
        glide = requestAnimationFrame(step);
      };
      step();
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    element.addEventListener("touchstart", onStart, { passive: true });
    element.addEventListener("touchmove", onMove, { passive: false });
    element.addEventListener("touchend", onEnd);
    return () => {
      cancelAnimationFrame(frame);
      cancelAnimationFrame(glide);
      element.removeEventListener("wheel", onWheel);
      element.removeEventListener("touchstart", onStart);
      element.removeEventListener("touchmove", onMove);
      element.removeEventListener("touchend", onEnd);
    };
  }, [view]);
}
