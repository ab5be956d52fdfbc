/**
 * The order of the table, which does not change by itself: rows change in place. New processes are put in while the
 * list is at its top; otherwise they are counted until the user asks for them. A text only leaves rows out: they
 * are sorted when it begins, not with every letter.
 */
import { useCallback, useMemo, useRef, useState } from "react";
import type { Process } from "../../api/types";
import { loaded, members, processes } from "../../feed/processes";
import { Store, useStore } from "../../feed/store";
import { useOf } from "../../feed/use";
import { comparing, isShown, itemsOf, matcher, rankedOf, type Item, type Ranked, type View } from "./view";

/** Of all that the tab shows, whether the text leaves them out or not. */
interface Order {
  key: string;
  ids: string[];
  known: Set<string>;
  members: number;
  /** New ones that are not in the list yet. */
  fresh: string[];
}

export interface Rows {
  items: Item[];
  ids: string[];
  /** How many new ones are not in the list yet. */
  fresh: number;
  /** Orders everything anew. */
  settle(): void;
}

type All = ReadonlyMap<string, Process>;
const unchanging = new Store(null);

export function useRows(view: View, isAtTop: () => boolean): Rows {
  const { all } = processes.get();
  const count = useStore(members);
  const isLoaded = useStore(loaded);
  // The head of a group counts those that run.
  const version = useStore<unknown>(view.group === "none" ? unchanging : processes);
  const [turn, setTurn] = useState(0);
  const order = useRef<Order | null>(null);
  const key = JSON.stringify([view.show, view.sort, view.isReversed, view.text === "", turn, isLoaded]);
  const before = order.current;
  if (before === null || before.key !== key || (!isLoaded && before.members !== count))
    order.current = ordered(view, all, key, count);
  else if (before.members !== count) order.current = extended(before, view, all, count, isAtTop());
  const { ids: sorted, fresh } = order.current!;
  const fits = useMemo(() => fitting(all, view.text), [all, view.text]);
  const ids = useMemo(() => sorted.filter(fits), [sorted, fits]);
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const items = useMemo(() => itemsOf(ids, all, view.group), [ids, all, view.group, version]);
  const settle = useCallback(() => setTurn((value) => value + 1), []);
  return { items, ids, fresh: useMemo(() => fresh.filter(fits).length, [fresh, fits]), settle };
}

function fitting(all: All, text: string): (id: string) => boolean {
  const fits = matcher(text);
  return (id) => {
    const process = all.get(id);
    return process !== undefined && fits(process);
  };
}

const cpuOf = (process: Process) => (process.status === "ended" ? -1 : (useOf(process).lastCpu ?? -1));

function ordered(view: View, all: All, key: string, count: number): Order {
  const found: Ranked[] = [];
  for (const process of all.values()) if (isShown(process, view.show)) found.push(rankedOf(process, view.sort, cpuOf));
  found.sort(comparing(view.isReversed));
  return { key, ids: found.map((one) => one.id), known: new Set(all.keys()), members: count, fresh: [] };
}

function extended(before: Order, view: View, all: All, count: number, isAtTop: boolean): Order {
  const kept = before.ids.filter((id) => all.has(id));
  const added = [...all.values()].filter((process) => !before.known.has(process.id) && isShown(process, view.show));
  if (!isAtTop) {
    const ids = kept.length === before.ids.length ? before.ids : kept;
    return { ...before, ids, members: count, fresh: added.map((process) => process.id) };
  }
  const compare = comparing(view.isReversed);
  const left = added.map((process) => rankedOf(process, view.sort, cpuOf)).sort(compare);
  const ids: string[] = [];
  for (const id of kept) {
    while (left.length && compare(left[0]!, rankedOf(all.get(id)!, view.sort, cpuOf)) < 0) ids.push(left.shift()!.id);
    ids.push(id);
  }
  ids.push(...left.map((one) => one.id));
  return { key: before.key, ids, known: new Set(all.keys()), members: count, fresh: [] };
}
