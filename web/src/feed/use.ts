/** What processes use over time, and their last lines; both for rows on the screen alone. */
import { lastLines, top } from "../api/operations";
import type { Process } from "../api/types";
import { oneLine } from "../model/format";
import { onMeasured, processes } from "./processes";
import { Store } from "./store";

const MOST_SAMPLES = 24;
const MOST_LINES = 2000;
const AT_ONCE = 3;

export interface Use {
  cpu: number[];
  lastCpu: number | null;
}

interface Sample extends Use {
  seconds: number | null;
  at: number;
}

const samples = new Map<string, Sample>();

onMeasured((found) => {
  const now = performance.now() / 1000;
  for (const process of found) {
    const sample = samples.get(process.id);
    if (process.status === "ended") samples.delete(process.id);
    else if (sample) addSample(sample, process.cpu_seconds, now);
  }
});

function addSample(sample: Sample, seconds: number | null, now: number): void {
  if (seconds === null || now - sample.at < 0.9) return;
  // The same value again is an old measurement, unless it stays for long.
  if (seconds === sample.seconds && now - sample.at < 3.5) return;
  if (sample.seconds !== null && seconds >= sample.seconds) {
    const value = (100 * (seconds - sample.seconds)) / (now - sample.at);
    sample.cpu = [...sample.cpu, value].slice(-MOST_SAMPLES);
    sample.lastCpu = value;
  }
  sample.seconds = seconds;
  sample.at = now;
}

export function useOf(process: Process): Use {
  let sample = samples.get(process.id);
  if (sample === undefined) {
    sample = { cpu: [], lastCpu: null, seconds: process.cpu_seconds, at: performance.now() / 1000 };
    if (process.status !== "ended") samples.set(process.id, sample);
  }
  return sample;
}

/** The samples that the daemon has, so that the first picture is not empty. */
export async function readHistory(): Promise<void> {
  const found = await top(MOST_SAMPLES, 500);
  for (const row of found.processes) {
    const history = (row.history as { cpu_percent?: number[] }).cpu_percent ?? [];
    const before = samples.get(row.id);
    if (before && before.cpu.length) continue;
    samples.set(row.id, {
      cpu: [...history],
      lastCpu: row.cpu_percent,
      seconds: row.cpu_seconds,
      at: performance.now() / 1000,
    });
  }
}

export const lines = new Store<ReadonlyMap<string, string>>(new Map());
const known = new Map<string, { bytes: number; text: string }>();
const wanted: string[] = [];
let reading = 0;

/** Reads the last line of these where they wrote since it was last read. */
export function wantLines(ids: string[]): void {
  wanted.length = 0;
  for (const id of ids) {
    const process = processes.get().all.get(id);
    if (process && process.output_bytes !== (known.get(id)?.bytes ?? 0)) wanted.push(id);
  }
  while (reading < AT_ONCE && wanted.length) void readNext();
}

async function readNext(): Promise<void> {
  const id = wanted.shift();
  const process = id === undefined ? undefined : processes.get().all.get(id);
  if (id === undefined || process === undefined) return;
  reading += 1;
  try {
    const page = await lastLines(id, 4);
    const text = page.text.split("\n").filter((line) => line.trim()).at(-1) ?? "";
    known.delete(id);
    known.set(id, { bytes: process.output_bytes, text: oneLine(text).slice(0, 300) });
    if (known.size > MOST_LINES) known.delete(known.keys().next().value ?? "");
    lines.set(new Map([...known].map(([key, value]) => [key, value.text])));
  } catch {
    known.set(id, { bytes: process.output_bytes, text: known.get(id)?.text ?? "" });
  } finally {
    reading -= 1;
    void readNext();
  }
}
