/** What happened to a process: its events and notices, a line each. */
import { useEffect, useState } from "react";
import { lineAtTime, processEvents } from "../../api/operations";
import { sentenceOf } from "../../api/problem";
import type { HoldfastEvent, Process } from "../../api/types";
import { navigate, processPath } from "../../app/router";
import { sayError } from "../../app/toasts";
import { Empty, Failure, Loading } from "../../components/basics";
import { onEvent } from "../../feed/processes";
import { clock, duration, exact, oneLine, size } from "../../model/format";
import { signalName } from "../../model/state";

/** Fields of every event of a process, which its row shows in other ways. */
const SHOWN_ELSEWHERE = ["type", "ts", "src", "seq", "id", "via", "name", "session", "task", "run"];

/** What the topics of the usual events are called here. */
const WORDS: Record<string, string> = {
  "process.queued": "queued",
  "process.started": "started",
  "process.ready": "ready",
  "process.not_ready": "not ready",
  "process.attached": "attached",
  "process.detached": "detached",
  "process.match": "matched",
  "process.input_needed": "needs input",
  "process.input_over": "answered",
  "process.stalled": "stalled",
  "process.stall_over": "active again",
  "process.deadline": "deadline",
  "process.restarting": "restarts",
  "process.recovered": "recovered",
  "process.transferred": "transferred",
  "process.ended": "ended",
  "notification.queued": "notification",
  "notification.delivered": "delivered",
  "notification.acked": "acknowledged",
  "approval.requested": "approval asked",
  "approval.decided": "approval decided",
};

const belongs = (event: HoldfastEvent, id: string) => event.id === id || event.process === id;

export function TimelineTab({ process }: { process: Process }) {
  const [list, setList] = useState<HoldfastEvent[] | null>(null);
  const [isCut, setCut] = useState(false);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    processEvents(process.id, stop.signal)
      .then((read) => {
        setList((now) => merged(read.events, now ?? []));
        setCut(read.more);
      })
      .catch((failed: unknown) => !stop.signal.aborted && setError(sentenceOf(failed)));
    const stopEvents = onEvent((event) => {
      if (belongs(event, process.id)) setList((now) => merged(now ?? [], [event]));
    });
    return () => {
      stop.abort();
      stopEvents();
    };
  }, [process.id]);
  if (error) return <Failure text={error} />;
  if (list === null) return <Loading what="its events" />;
  if (!list.length) return <Empty title="No event of it is kept any more" />;
  return (
    <>
      {isCut && <p className="muted">Older events are on the Events page.</p>}
      <ol className="timeline">
        {[...list].reverse().map((event) => (
          <li key={`${event.seq} ${event.ts} ${event.type}`} className={`timeline-${event.type.replace(".", "-")}`}>
            <time title={exact(event.ts)}>{clock(event.ts)}</time>
            <span className="timeline-type" title={event.type}>
              {WORDS[event.type] ?? event.type}
            </span>
            <span className="timeline-text">{oneLine(textOf(event))}</span>
            {process.output_bytes > 0 && (
              <button className="quiet" onClick={() => void openLog(process.id, event)}>
                in the log
              </button>
            )}
          </li>
        ))}
      </ol>
    </>
  );
}

/** Opens the log at the line that was the last one when it happened. */
async function openLog(id: string, event: HoldfastEvent): Promise<void> {
  try {
    const at = typeof event.offset === "number" ? event.offset : await lineAtTime(id, event.ts);
    navigate(`${processPath(id, "log")}?at=${at}`);
  } catch (failed) {
    sayError(failed);
  }
}

function merged(one: HoldfastEvent[], other: HoldfastEvent[]): HoldfastEvent[] {
  const known = new Set(one.map((event) => event.seq));
  const added = other.filter((event) => event.seq === undefined || !known.has(event.seq));
  return added.length ? [...one, ...added].sort((a, b) => (a.seq ?? a.ts) - (b.seq ?? b.ts)) : one;
}

/** A sentence about the event, made of its fields. */
export function textOf(event: HoldfastEvent): string {
  const field = (name: string) => (event[name] === null || event[name] === undefined ? "" : String(event[name]));
  switch (event.type) {
    case "process.started":
      return `${Number(event.run) > 0 ? `run ${Number(event.run) + 1}, ` : ""}pid ${field("pid")}: ${field("command")}`;
    case "process.ended":
      return [
        field("reason"),
        event.exit_code !== null && `exit code ${field("exit_code")}`,
        typeof event.signal === "number" && signalName(event.signal),
        event.killed_by && `by ${field("killed_by")}`,
        event.forced && "forced",
        typeof event.started_at === "number" && `after ${duration(event.ts - event.started_at)}`,
        `${size(Number(event.output_bytes ?? 0))} of output`,
      ].filter(Boolean).join(", ");
    case "process.restarting":
      return `${field("reason")}${event.exit_code !== null ? `, exit code ${field("exit_code")}` : ""}`;
    case "process.input_needed":
      return `${event.secret ? "asks for a secret: " : "asks: "}${field("prompt")}`;
    case "process.stalled":
      return typeof event.last_output_at === "number" ? `no output for ${duration(event.ts - event.last_output_at)}` : "no output";
    case "process.queued":
      return `${field("command")}${event.queue ? `, in the queue ${field("queue")}` : ""}`;
    case "process.stall_over":
    case "process.input_over":
      return typeof event.since === "number" ? `after ${duration(event.ts - event.since)}` : "";
    case "process.match":
      return `${field("output")}${Number(event.count) > 1 ? ` (${field("count")} lines)` : ""}`;
    case "process.transferred":
      return `from ${field("was")} to ${field("session")}`;
    case "process.attached":
    case "process.detached":
    case "process.removed":
      return event.by ? `by ${field("by")}` : event.type === "process.removed" ? "its time was over" : "a terminal";
    case "notification.queued":
      return `${field("kind")}, for ${field("session")}`;
    case "notification.delivered":
      return `${field("kind")}, to ${field("to") || field("session")}`;
    case "notification.acked":
      return `${field("kind")}, by ${field("by")}`;
    case "approval.requested":
      return `${field("command")}: ${field("why")}`;
    case "approval.decided":
      return `${field("state")}${event.scope ? ` for ${field("scope")}` : ""}${event.by ? `, by ${field("by")}` : ""}`;
    case "process.output":
      return `${size(Number(event.new_bytes ?? 0))} more`;
    default:
      return Object.entries(event)
        .filter(([name, value]) => !SHOWN_ELSEWHERE.includes(name) && value !== null)
        .map(([name, value]) => `${name}=${typeof value === "object" ? JSON.stringify(value) : String(value)}`)
        .join(" ");
  }
}
