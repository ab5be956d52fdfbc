/** What an event says about a process, applied to the process object. */
import type { HoldfastEvent, Process } from "../api/types";

type Change = Partial<Process>;

/** The change, or null where the event says nothing about the object. */
export function changeOf(event: HoldfastEvent): Change | null {
  switch (event.type) {
    case "process.started":
      return {
        status: "running",
        reason: null,
        exit_code: null,
        signal: null,
        started_at: event.ts,
        ended_at: null,
        restart_at: null,
        pid: event.pid as number,
        restarts: event.run as number,
        stalled: false,
        needs_input: null,
      };
    case "process.queued":
      return { status: "waiting", queue: event.queue as string | null };
    case "process.ready":
      return { ready: true, ready_at: event.ts, ready_trouble: null };
    case "process.not_ready":
      return { ready: false, ready_trouble: event.why as string };
    case "process.input_needed":
      return { needs_input: { since: event.since, prompt: event.prompt, secret: event.secret } };
    case "process.stalled":
      return { stalled: true, stall_data: { since: event.since, last_output_at: event.last_output_at } };
    case "process.stall_over":
      return { stalled: false, stall_data: null };
    case "process.input_over":
      return { needs_input: null };
    case "process.restarting":
      return { status: "restarting", restart_at: event.restart_at as number, needs_input: null, stalled: false };
    case "process.ended":
      return {
        status: "ended",
        reason: event.reason as string,
        exit_code: event.exit_code as number | null,
        signal: event.signal as number | null,
        ended_at: event.ts,
        killed_by: event.killed_by as string | null,
        forced: event.forced as boolean | null,
        output_bytes: event.output_bytes as number,
        gave_up: event.gave_up as boolean | null,
        needs_input: null,
        stalled: false,
        restart_at: null,
        ports: [],
        rss_bytes: null,
        stdin_open: false,
      };
    case "process.recovered":
      return { status: "running", pid: event.pid as number };
    case "process.transferred":
      return { session: event.session };
    default:
      return null;
  }
}

/** The object of a process of which only an event is known yet; the rest is read soon. */
export function stubOf(event: HoldfastEvent): Process {
  const stub: Partial<Process> = {
    id: event.id,
    name: (event.name as string | null | undefined) ?? null,
    command: (event.command as string | undefined) ?? "",
    argv: [],
    cwd: (event.cwd as string | undefined) ?? "",
    session: event.session ?? "",
    task: (event.task as string | null | undefined) ?? null,
    backend: "local",
    pid: null,
    status: "running",
    reason: null,
    exit_code: null,
    signal: null,
    started_at: event.ts,
    created_at: event.ts,
    ended_at: null,
    ready: null,
    output_bytes: 0,
    dropped_bytes: 0,
    pty: Boolean(event.pty),
    stdin_open: false,
    leftover_pids: [],
    labels: {},
    watch: [],
    after: [],
    ports: null,
    rss_bytes: null,
    cpu_seconds: null,
    needs_input: null,
    stalled: false,
    trouble: null,
    ready_trouble: null,
    restarts: 0,
    gave_up: null,
    forced: null,
    killed_by: null,
    queue: null,
    place: null,
    attached: [],
    typed: null,
  };
  return stub as Process;
}
