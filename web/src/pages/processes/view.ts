/** Which processes the table shows, and in which order. */
import type { Process } from "../../api/types";
import { bornAt, projectOf, stateOf } from "../../model/state";

export type Show = "all" | "running" | "attention" | "failed" | "ended";
export type SortKey = "activity" | "state" | "command" | "name" | "session" | "cpu" | "memory" | "age";
export type GroupKey = "none" | "session" | "task" | "project";

export interface View {
  show: Show;
  text: string;
  sort: SortKey;
  isReversed: boolean;
  group: GroupKey;
}

export const SHOWS: { show: Show; label: string }[] = [
  { show: "all", label: "All" },
  { show: "running", label: "Running" },
  { show: "attention", label: "Attention" },
  { show: "failed", label: "Failed" },
  { show: "ended", label: "Ended" },
];

const ATTENTION = new Set(["asks", "stalled", "unreachable"]);

export function isShown(process: Process, show: Show): boolean {
  switch (show) {
    case "all":
      return true;
    case "running":
      return process.status !== "ended";
    case "ended":
      return process.status === "ended";
    case "attention":
      return ATTENTION.has(stateOf(process).name);
    case "failed":
      return ["failed", "lost"].includes(stateOf(process).name);
  }
}

/** What a row can be found by, in lower case. An object never changes: a process that did has another one. */
const texts = new WeakMap<Process, string>();

function textOf(process: Process): string {
  const known = texts.get(process);
  if (known !== undefined) return known;
  const ports = (process.ports ?? []).map((port) => `:${port}`).join(" ");
  const shown = [process.id, process.name, process.command, process.session, process.task, stateOf(process).word, ports];
  const text = shown.join("\n").toLowerCase();
  texts.set(process, text);
  return text;
}

/** Every word must occur in what the row shows. */
export function matcher(text: string): (process: Process) => boolean {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return () => true;
  return (process) => words.every((word) => textOf(process).includes(word));
}

const URGENCY: Record<string, number> = { asks: 0, stalled: 1, unreachable: 1, starting: 2, running: 2, waiting: 3 };

/** What needs attention, then what runs, newest first, then what ended last. */
function activity(process: Process): number {
  const urgency = URGENCY[stateOf(process).name] ?? 4;
  return urgency * LATER - (urgency === 4 ? (process.ended_at ?? 0) : bornAt(process));
}

/** More seconds than any time. */
const LATER = 1e11;

type Cpu = (process: Process) => number;

const RANKS: Record<SortKey, (process: Process, cpuOf: Cpu) => number | string> = {
  activity,
  state: (process) => stateOf(process).word,
  command: (process) => process.command,
  name: (process) => process.name ?? "\uffff",
  session: (process) => process.session,
  cpu: (process, cpuOf) => -cpuOf(process),
  memory: (process) => -(process.rss_bytes ?? -1),
  age: (process) => -bornAt(process),
};

/** What a process is sorted by, so that it is found once and not in every comparison. */
export interface Ranked {
  rank: number | string;
  born: number;
  id: string;
}

export const rankedOf = (process: Process, sort: SortKey, cpuOf: Cpu): Ranked => ({
  rank: RANKS[sort](process, cpuOf),
  born: bornAt(process),
  id: process.id,
});

/** Equal ones: the newest first. */
export function comparing(isReversed: boolean): (one: Ranked, other: Ranked) => number {
  const direction = isReversed ? -1 : 1;
  return (one, other) => {
    if (one.rank !== other.rank) return one.rank < other.rank ? -direction : direction;
    return other.born - one.born || (one.id < other.id ? -1 : 1);
  };
}

export function groupOf(process: Process, group: GroupKey): string {
  switch (group) {
    case "session":
      return process.session;
    case "task":
      return process.task ?? "no task";
    case "project":
      return projectOf(process) ?? "no project";
    default:
      return "";
  }
}

export type Item =
  | { kind: "row"; id: string }
  | { kind: "group"; label: string; count: number; running: number };

/** Rows in their order, below the heads of their groups. */
export function itemsOf(order: string[], all: ReadonlyMap<string, Process>, group: GroupKey): Item[] {
  if (group === "none") return order.map((id) => ({ kind: "row", id }));
  const groups = new Map<string, string[]>();
  for (const id of order) {
    const process = all.get(id);
    if (!process) continue;
    const key = groupOf(process, group);
    const ids = groups.get(key);
    if (ids) ids.push(id);
    else groups.set(key, [id]);
  }
  const items: Item[] = [];
  for (const [label, ids] of [...groups].sort(([one], [other]) => (one < other ? -1 : 1))) {
    const running = ids.filter((id) => all.get(id)?.status !== "ended").length;
    items.push({ kind: "group", label, count: ids.length, running });
    for (const id of ids) items.push({ kind: "row", id });
  }
  return items;
}
