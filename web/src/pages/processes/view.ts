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

/** Every word must occur in what the row shows. */
export function matcher(text: string): (process: Process) => boolean {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return () => true;
  return (process) => {
    const ports = (process.ports ?? []).map((port) => `:${port}`).join(" ");
    const shown = [process.id, process.name, process.command, process.session, process.task, stateOf(process).word, ports];
    const candidate = shown.join("\n").toLowerCase();
    return words.every((word) => candidate.includes(word));
  };
}

const URGENCY: Record<string, number> = { asks: 0, stalled: 1, unreachable: 1, starting: 2, running: 2, waiting: 3 };

/** What needs attention, then what runs, newest first, then what ended last. */
function activity(process: Process): [number, number] {
  const urgency = URGENCY[stateOf(process).name] ?? 4;
  return [urgency, -(urgency === 4 ? (process.ended_at ?? 0) : bornAt(process))];
}

type Compare = (one: Process, other: Process) => number;
const byText = (of: (process: Process) => string): Compare => (one, other) => {
  const [a, b] = [of(one), of(other)];
  return a < b ? -1 : a > b ? 1 : 0;
};
const byNumber = (of: (process: Process) => number): Compare => (one, other) => of(one) - of(other);

export function comparing(view: View, cpuOf: (process: Process) => number): Compare {
  const direction = view.isReversed ? -1 : 1;
  const compare = comparers(cpuOf)[view.sort];
  const last = byNumber((process) => -bornAt(process));
  return (one, other) => direction * compare(one, other) || last(one, other) || byText((process) => process.id)(one, other);
}

function comparers(cpuOf: (process: Process) => number): Record<SortKey, Compare> {
  return {
    activity: (one, other) => {
      const [a, b] = [activity(one), activity(other)];
      return a[0] - b[0] || a[1] - b[1];
    },
    state: byText((process) => stateOf(process).word),
    command: byText((process) => process.command),
    name: byText((process) => process.name ?? "\uffff"),
    session: byText((process) => process.session),
    cpu: byNumber((process) => -cpuOf(process)),
    memory: byNumber((process) => -(process.rss_bytes ?? -1)),
    age: byNumber((process) => -bornAt(process)),
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
