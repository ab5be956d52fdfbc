/** What processes use over time, and their last lines; both for rows on the screen alone. */
import { top } from "../api/operations";
import type { Process } from "../api/types";
import { oneLine } from "../model/format";
import { onMeasured } from "./processes";

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
    else uses.set(process.id, { cpu: process.history.cpu_percent ?? [], lastCpu: process.cpu_percent });
  }
  for (const id of lines.keys()) {
    if (lines.size <= MOST_LINES) break;
    lines.delete(id);
  }
});

export const useOf = (process: Process): Use => uses.get(process.id) ?? NONE;
export const lastLineOf = (process: Process): string => lines.get(process.id) ?? "";

/** Measures all of them once, to sort by it. */
export async function measureAll(): Promise<void> {
  for (const row of (await top()).processes)
    uses.set(row.id, { cpu: uses.get(row.id)?.cpu ?? [], lastCpu: row.cpu_percent });
}
