/** Everything that happens, as it happens; by topic, and with a pause. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState } from "react";
import { events as readEvents } from "../../api/operations";
import { sentenceOf } from "../../api/problem";
import type { HoldfastEvent } from "../../api/types";
import { useKeys } from "../../app/keys";
import { processPath, setQuery, usePlace } from "../../app/router";
import { Empty, Failure, Link } from "../../components/basics";
import { Icon } from "../../components/Icon";
import { useIsPhone } from "../../components/useIsPhone";
import { useRootClass } from "../../components/useRootClass";
import { EventFeed } from "../../feed/events";
import { clock, count, exact, oneLine } from "../../model/format";
import { textOf } from "../process/TimelineTab";

const MOST = 5000;
const PAST = 200;
const TICK = 100;
const ROW = 30;
const PHONE_ROW = 50;

interface Firehose {
  list: HoldfastEvent[];
  held: number;
  error: string | null;
  isOpen: boolean;
}

/** The newest events of a pattern, newest first. While it is paused they are held back. */
function useFirehose(pattern: string, isPaused: boolean): Firehose {
  const [list, setList] = useState<HoldfastEvent[]>([]);
  const [held, setHeld] = useState(0);
  const [error, setError] = useState<string | null>(null);
  const [isOpen, setOpen] = useState(false);
  const waiting = useRef<HoldfastEvent[]>([]);
  const paused = useRef(isPaused);
  paused.current = isPaused;
  useEffect(() => {
    waiting.current = [];
    setList([]);
    setError(null);
    const stop = new AbortController();
    const feed = new EventFeed(pattern, {
      open: () => setOpen(true),
      closed: () => setOpen(false),
      events: (batch) => {
        waiting.current.push(...batch);
        if (waiting.current.length > MOST) waiting.current.splice(0, waiting.current.length - MOST);
      },
    });
    const begin = async () => {
      const { newest } = await readEvents(pattern, 0, 1, stop.signal);
      const found: HoldfastEvent[] = [];
      let since = Math.max(0, newest - 2000);
      while (since < newest) {
        const page = await readEvents(pattern, since, 1000, stop.signal);
        found.push(...page.events);
        if (page.next <= since) break;
        since = page.next;
      }
      setList(found.slice(-PAST).reverse());
      feed.start(Math.max(since, newest));
    };
    begin().catch((failed: unknown) => !stop.signal.aborted && setError(sentenceOf(failed)));
    const timer = setInterval(() => {
      setHeld(paused.current ? waiting.current.length : 0);
      if (paused.current || !waiting.current.length) return;
      const fresh = waiting.current.splice(0).reverse();
      setList((now) => [...fresh, ...now].slice(0, MOST));
    }, TICK);
    return () => {
      stop.abort();
      feed.stop();
      clearInterval(timer);
    };
  }, [pattern]);
  return { list, held, error, isOpen };
}

export function EventsPage(_: { rest: string[] }) {
  const { query } = usePlace();
  const pattern = query.get("pattern") ?? "**";
  const [text, setText] = useState(pattern);
  const [isPaused, setPaused] = useState(false);
  const frame = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const { list, held, error, isOpen } = useFirehose(pattern, isPaused);
  const height = useIsPhone() ? PHONE_ROW : ROW;
  const virtual = useVirtualizer({
    count: list.length,
    getScrollElement: () => frame.current,
    estimateSize: () => height,
    overscan: 10,
    getItemKey: (index) => list[index]?.seq ?? `${list[index]?.ts} ${index}`,
  });
  useEffect(() => virtual.measure(), [virtual, height]);
  useEffect(() => {
    const timer = setTimeout(() => setQuery({ pattern: text.trim() && text.trim() !== "**" ? text.trim() : null }), 400);
    return () => clearTimeout(timer);
  }, [text]);
  useRootClass("has-events");
  useKeys("Events", [
    { key: "/", does: "pattern", run: () => field.current?.focus() },
    { key: "p", does: "pause", run: () => setPaused(!isPaused) },
  ]);
  return (
    <div className="events-page">
      <div className="toolbar">
        <h1 className="hidden-text">Events</h1>
        <label className="filter">
          <Icon name="search" />
          <input
            ref={field}
            value={text}
            aria-label="Pattern of topics"
            placeholder="process.* notification.*"
            spellCheck={false}
            onChange={(event) => setText(event.target.value)}
          />
          <kbd aria-hidden="true">/</kbd>
        </label>
        <div className="segments" role="group" aria-label="Patterns">
          {["**", "process.*", "notification.*", "approval.*", "session.*"].map((one) => (
            <button key={one} aria-pressed={pattern === one} onClick={() => setText(one)}>
              {one === "**" ? "all" : one}
            </button>
          ))}
        </div>
        <button className="start-button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          <Icon name={isPaused ? "play" : "pause"} />
          {isPaused ? `Go on${held ? ` (${count(held)} new)` : ""}` : "Pause"}
        </button>
      </div>
      {error && <Failure text={error} />}
      {!error && list.length === 0 && isOpen && <Empty title="No event of this pattern yet">They show here as they happen.</Empty>}
      <div className="events-frame" ref={frame} tabIndex={0} role="region" aria-label="Events, newest first">
        <ol className="events" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map((item) => {
            const event = list[item.index]!;
            return (
              <li key={item.key} style={{ transform: `translateY(${item.start}px)` }} title={JSON.stringify(event, null, 2)}>
                <time title={exact(event.ts)}>{clock(event.ts)}</time>
                <span className="timeline-type">{event.type}</span>
                <span className="event-of">
                  {event.id?.startsWith("proc_") ? (
                    <Link to={processPath(event.id)}>{oneLine(event.name ?? event.id)}</Link>
                  ) : (
                    oneLine(event.session ?? "")
                  )}
                </span>
                <span className="event-text">{oneLine(textOf(event))}</span>
                <span className="number muted">{event.seq ?? ""}</span>
              </li>
            );
          })}
        </ol>
      </div>
    </div>
  );
}
