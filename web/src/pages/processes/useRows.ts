/**
 * The order of the table, which does not change by itself: rows change in place. New processes are put in while the
 * list is at its top; otherwise they are counted until the user asks for them.
 */
import { useCallback, useMemo, useRef, useState } from "react";
import type { Process } from "../../api/types";
import { loaded, processes } from "../../feed/processes";
import { useStore } from "../../feed/store";
import { useOf } from "../../feed/use";
import { comparing, isShown, itemsOf, matcher, type Item, type View } from "./view";

interface Order {
  key: string;
  ids: string[];
  known: Set<string>;
  members: number;
  fresh: number;
}

export interface Rows {
  items: Item[];
  ids: string[];
  /** How many new ones are not in the list yet. */
  fresh: number;
  /** Orders everything anew. */
  settle(): void;
}

export function useRows(view: View, isAtTop: () => boolean): Rows {
  const { all, members } = useStore(processes);
  const isLoaded = useStore(loaded);
  const [turn, setTurn] = useState(0);
  const order = useRef<Order | null>(null);
  const key = JSON.stringify([view, turn, isLoaded]);
  const before = order.current;
  if (before === null || before.key !== key || (!isLoaded && before.members !== members))
    order.current = ordered(view, all, key, members);
  else if (before.members !== members) order.current = extended(before, view, all, members, isAtTop());
  const { ids, fresh } = order.current!;
  const items = useMemo(() => itemsOf(ids, all, view.group), [ids, all, view.group]);
  return { items, ids, fresh, settle: useCallback(() => setTurn((value) => value + 1), []) };
}

const cpuOf = (process: Process) => (process.status === "ended" ? -1 : (useOf(process).lastCpu ?? -1));

function ordered(view: View, all: ReadonlyMap<string, Process>, key: string, members: number): Order {
  const fits = matcher(view.text);
  const found = [...all.values()].filter((process) => isShown(process, view.show) && fits(process));
  found.sort(comparing(view, cpuOf));
  return { key, ids: found.map((process) => process.id), known: new Set(all.keys()), members, fresh: 0 };
}

function extended(before: Order, view: View, all: ReadonlyMap<string, Process>, members: number, isAtTop: boolean): Order {
  const fits = matcher(view.text);
  const kept = before.ids.filter((id) => all.has(id));
  const added = [...all.values()].filter(
    (process) => !before.known.has(process.id) && isShown(process, view.show) && fits(process),
  );
  if (!isAtTop) {
    return { ...before, ids: kept.length === before.ids.length ? before.ids : kept, members, fresh: added.length };
  }
  const compare = comparing(view, cpuOf);
  added.sort(compare);
  const ids: string[] = [];
  for (const id of kept) {
    while (added.length && compare(added[0]!, all.get(id)!) < 0) ids.push(added.shift()!.id);
    ids.push(id);
  }
  ids.push(...added.map((process) => process.id));
  return { key: before.key, ids, known: new Set(all.keys()), members, fresh: 0 };
}
