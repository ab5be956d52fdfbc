/** The ten states that a process is shown in, the same as in `ps` and in the terminal UI. */
import type { Process } from "../api/types";

export type StateName =
  | "running"
  | "starting"
  | "succeeded"
  | "failed"
  | "killed"
  | "waiting"
  | "asks"
  | "stalled"
  | "unreachable"
  | "lost";

export interface ProcessState {
  name: StateName;
  /** What is written beside the icon. */
  word: string;
}

const SIGNALS: Record<number, string> = {
  1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
  9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
}; // prettier-ignore

export const signalName = (number: number) => SIGNALS[number] ?? `signal ${number}`;

export function stateOf(process: Process): ProcessState {
  switch (process.status) {
    case "waiting":
      return { name: "waiting", word: "waiting" };
    case "restarting":
      return { name: "starting", word: "restarting" };
    case "unreachable":
      return { name: "unreachable", word: "unreachable" };
    case "running":
      return runningState(process);
    default:
      return endedState(process);
  }
}

function runningState(process: Process): ProcessState {
  if (process.needs_input) return { name: "asks", word: "needs input" };
  if (process.stalled) return { name: "stalled", word: "stalled" };
  if (process.trouble) return { name: "stalled", word: "trouble" };
  if (process.ready_trouble) return { name: "stalled", word: "not ready" };
  if (process.ready === false) return { name: "starting", word: "starting" };
  return { name: "running", word: "running" };
}

function endedState(process: Process): ProcessState {
  const code = process.exit_code;
  switch (process.reason) {
    case "exited":
      if (code === 0) return { name: "succeeded", word: "exited 0" };
      return { name: "failed", word: process.gave_up ? `gave up, exit ${code}` : `exit ${code}` };
    case "signaled":
      return { name: "failed", word: process.signal === null ? "signal" : signalName(process.signal) };
    case "oom":
      return { name: "failed", word: "out of memory" };
    case "failed_start":
      return { name: "failed", word: "not started" };
    case "deadline":
      return { name: "killed", word: "deadline" };
    case "skipped":
      return { name: "killed", word: "skipped" };
    case "lost":
      return { name: "lost", word: "lost" };
    default:
      return { name: "killed", word: "killed" };
  }
}

export const isLive = (process: Process) => process.status !== "ended";

export function projectOf(process: Process): string | null {
  return process.task?.startsWith("project:") ? process.task.slice("project:".length) : null;
}

/** What a process is called in the page: its name, or its id. */
export const titleOf = (process: Process) => process.name ?? process.id;

/** When it was first asked for, or started. */
export const bornAt = (process: Process) => process.created_at ?? process.started_at ?? 0;

/** The clients whose terminals show it now. */
export const clientsOf = (process: Process) => (process.attached ?? []) as { by: string; since: number }[];
/** Its last input. */
export const typedOf = (process: Process) => (process.typed ?? null) as { by: string; at: number } | null;

/** Seconds that it ran, or has been running. */
export function ageOf(process: Process, now: number): number | null {
  const from = process.created_at ?? process.started_at;
  if (from === null) return null;
  return (process.ended_at ?? now) - from;
}
