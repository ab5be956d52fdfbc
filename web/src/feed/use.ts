/** What processes use over time, and their last lines; both for rows on the screen alone. */
import { useSyncExternalStore } from "react";
import { top } from "../api/operations";
import type { Process } from "../api/types";
import { oneLine } from "../model/format";
import { onMeasured, processes } from "./processes";

const MOST_LINES = 3000;
const LONGEST_LINE = 300;

export interface Use {
  cpu: number[];
  lastCpu: number | null;
}

const NONE: Use = { cpu: [], lastCpu: null };
const uses = new Map<string, Use>();
const lines = new Map<string, string>();

onMeasured((found) => {
  for (const process of found) {
    lines.delete(process.id);
    lines.set(process.id, oneLine(process.last_line).slice(0, LONGEST_LINE));
    if (process.status === "ended") uses.delete(process.id);
    else setUse(process.id, { cpu: process.history.cpu_percent ?? [], lastCpu: process.cpu_percent });
  }
  for (const id of lines.keys()) {
    if (lines.size <= MOST_LINES) break;
    lines.delete(id);
  }
});

export const useOf = (process: Process): Use => uses.get(process.id) ?? NONE;

/** What a row shows. */
export interface RowData {
  process: Process;
  line: string;
  use: Use;
}

/** The row of a process, or null where there is none any more. Only changes of this process draw it again. */
export function useRow(id: string): RowData | null {
  return useSyncExternalStore(processes.subscribe, () => rowOf(id));
}

const rows = new WeakMap<Process, RowData>();

function rowOf(id: string): RowData | null {
  const process = processes.get().all.get(id);
  if (process === undefined) return null;
  const [line, use] = [lines.get(id) ?? "", uses.get(id) ?? NONE];
  const before = rows.get(process);
  if (before?.line === line && before.use === use) return before;
  const now = { process, line, use };
  rows.set(process, now);
  return now;
}

function setUse(id: string, use: Use): void {
  const before = uses.get(id);
  const isSame = before?.lastCpu === use.lastCpu && before.cpu.join() === use.cpu.join();
  if (!isSame) uses.set(id, use);
}

/** Measures all of them once, to sort by it. */
export async function measureAll(): Promise<void> {
  for (const row of (await top()).processes)
    setUse(row.id, { cpu: uses.get(row.id)?.cpu ?? [], lastCpu: row.cpu_percent });
}
