/** What the header and the strip above every page say: counted from all processes, a few times a second at most. */
import type { Process } from "../api/types";
import { stateOf } from "../model/state";
import { processes } from "./processes";
import { Store } from "./store";

const INTERVAL = 250;
/** A failure needs attention for this long, as in `ps --short`. */
const FAILURE_AGE = 1800;
const KEY = "holdfast-dismissed";

export interface Summary {
  all: number;
  running: number;
  ended: number;
  failed: number;
  asks: Process[];
  stalled: Process[];
  /** Failures of the last half hour that were not dismissed, newest first. */
  failures: Process[];
}

const empty: Summary = { all: 0, running: 0, ended: 0, failed: 0, asks: [], stalled: [], failures: [] };
export const summary = new Store<Summary>(empty);
const dismissed = new Set<string>(JSON.parse(localStorage.getItem(KEY) ?? "[]") as string[]);

/** The run is part of the key: a later failure of the same process counts again. */
const keyOf = (process: Process) => `${process.id}:${process.restarts ?? 0}:${process.ended_at ?? 0}`;

export function dismiss(failures: Process[]): void {
  for (const process of failures) dismissed.add(keyOf(process));
  localStorage.setItem(KEY, JSON.stringify([...dismissed].slice(-500)));
  summarise();
}

function summarise(): void {
  const found: Summary = { all: processes.get().all.size, running: 0, ended: 0, failed: 0, asks: [], stalled: [], failures: [] };
  const oldest = Date.now() / 1000 - FAILURE_AGE;
  for (const process of processes.get().all.values()) {
    if (process.status === "ended") found.ended += 1;
    else if (process.status !== "waiting") found.running += 1;
    const { name } = stateOf(process);
    if (name === "asks") found.asks.push(process);
    else if (name === "stalled" || name === "unreachable") found.stalled.push(process);
    else if (name === "failed" || name === "lost") {
      found.failed += 1;
      if ((process.ended_at ?? 0) > oldest && !dismissed.has(keyOf(process))) found.failures.push(process);
    }
  }
  found.failures.sort((one, other) => (other.ended_at ?? 0) - (one.ended_at ?? 0));
  summary.set(found);
}

let timer: ReturnType<typeof setTimeout> | undefined;

processes.subscribe(() => {
  timer ??= setTimeout(() => {
    timer = undefined;
    summarise();
  }, INTERVAL);
});
setInterval(summarise, 60_000);
