/**
 * All processes that the daemon knows: read once in pages, then kept by events.
 *
 * The feed is opened first; events that come while the pages are read are applied to what the pages say. A gap in the
 * events, or a feed that could not go on, reads the pages again.
 */
import { glance, processPage, type GlancedProcess } from "../api/operations";
import { sentenceOf } from "../api/problem";
import type { HoldfastEvent, Process } from "../api/types";
import { changeOf, stubOf } from "./apply";
import { EventFeed } from "./events";
import { Store } from "./store";

/** Everything but samples of output, which come once a second from every process that writes. */
const PATTERN =
  "process.started process.ready process.not_ready process.input_needed process.attached process.detached " +
  "process.stalled process.stall_over process.input_over process.deadline process.queued process.restarting " +
  "process.ended process.removed process.match process.recovered process.transferred notification.* approval.* " +
  "session.* sink.* place.* daemon.* watch.*";
const REFRESH_INTERVAL = 1000;
/** The daemon has to answer that often, and in that time. */
const CHECK_INTERVAL = 5000;
/** Rows that come onto the screen are read after this time: while it is scrolled they are too many. */
const SOON = 60;
/** At most this many are read again in one request. */
const REFRESH_BATCH = 100;
/** Components are drawn again after changes at most this often, however many events come. */
const DRAW_INTERVAL = 100;
/** Samples of the use of CPU that a row shows. */
const HISTORY = 24;

export type Link = "connecting" | "open" | "reconnecting";

export interface Snapshot {
  /** Changes with every change of any process. */
  version: number;
  all: ReadonlyMap<string, Process>;
}

const all = new Map<string, Process>();
export const processes = new Store<Snapshot>({ version: 0, all }, DRAW_INTERVAL);
/** Changes when a process is added or removed. */
export const members = new Store<number>(0, DRAW_INTERVAL);
export const link = new Store<Link>("connecting");
/** Whether all pages have been read at least once; or why that failed. */
export const loaded = new Store<boolean>(false);
export const loadError = new Store<string | null>(null);

const listeners = new Set<(event: HoldfastEvent) => void>();
const measured = new Set<(found: GlancedProcess[]) => void>();
const visible = new Set<string>();
let dirty = new Set<string>();
let loading: AbortController | null = null;
let waiting: HoldfastEvent[] | null = null;

const feed = new EventFeed(PATTERN, {
  open(isFresh) {
    link.set("open");
    if (isFresh || !loaded.get()) void load();
    else for (const id of visible) dirty.add(id);
  },
  closed: () => link.set(loaded.get() ? "reconnecting" : "connecting"),
  events(batch) {
    if (batch.some((event) => event.type === "events.gap")) void load();
    if (waiting !== null) waiting.push(...batch);
    else applyAll(batch);
    for (const event of batch) for (const listener of listeners) listener(event);
  },
});

export function startFeed(): void {
  feed.start();
  setInterval(() => void refresh(), REFRESH_INTERVAL);
  setInterval(() => void check(), CHECK_INTERVAL);
  addEventListener("offline", () => void check());
  addEventListener("online", () => feed.retry());
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) feed.retry();
  });
}

/** A network that is gone, or a daemon that hangs, closes no socket. */
async function check(): Promise<void> {
  if (document.hidden || link.get() !== "open") return;
  await fetch("/livez", { cache: "no-store", signal: AbortSignal.timeout(CHECK_INTERVAL) }).catch(() => feed.restart());
}

export const reconnectNow = () => feed.retry();

/** Calls back with every event of the page's own feed. */
export function onEvent(listener: (event: HoldfastEvent) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Calls back with processes whose use was measured just now. */
export function onMeasured(listener: (found: GlancedProcess[]) => void): void {
  measured.add(listener);
}

/** These are on the screen: what they use is measured every other second. */
export function watchRows(ids: string[]): void {
  const fresh = ids.filter((id) => !visible.has(id));
  visible.clear();
  for (const id of ids) visible.add(id);
  for (const id of fresh) dirty.add(id);
  if (fresh.length) soon ??= setTimeout(() => void refresh(), SOON);
}

let soon: ReturnType<typeof setTimeout> | undefined;

export function put(process: Process): void {
  putAll([process]);
}

export function dropRows(ids: string[]): void {
  let isChanged = false;
  for (const id of ids) isChanged = all.delete(id) || isChanged;
  if (isChanged) publish(true);
}

/** Reads this process again soon. */
export function touch(id: string): void {
  dirty.add(id);
}

async function load(): Promise<void> {
  loading?.abort();
  const mine = (loading = new AbortController());
  waiting ??= [];
  const seen = new Set<string>();
  try {
    let after: string | null = null;
    do {
      const page: Awaited<ReturnType<typeof processPage>> = await processPage(after, mine.signal);
      for (const process of page.processes) seen.add(process.id);
      putAll(page.processes);
      after = page.next;
    } while (after !== null);
    dropRows([...all.keys()].filter((id) => !seen.has(id)));
    loaded.set(true);
    loadError.set(null);
  } catch (error) {
    if (mine.signal.aborted) return;
    loadError.set(sentenceOf(error));
    setTimeout(() => loading === mine && void load(), 2000);
    return;
  } finally {
    if (loading === mine) {
      const held = waiting ?? [];
      waiting = null;
      applyAll(held);
    }
  }
}

/** `isMeasured`: the use and the last lines of these were read, too. */
function putAll(found: Process[], isMeasured = false): void {
  let isNew = false;
  let isChanged = false;
  for (const process of found) {
    const before = all.get(process.id);
    isNew ||= before === undefined;
    // A list does not measure: what is known of the use stays.
    const now = before ? withUse(process, before) : process;
    // What did not change stays the same object, so that its row is not drawn again.
    if (before === undefined || !isSame(now, before)) {
      all.set(process.id, now);
      isChanged = true;
    }
  }
  if (isChanged || isMeasured) publish(isNew);
}

function isSame(one: Process, other: Process): boolean {
  for (const key of Object.keys(one) as (keyof Process)[]) {
    const [a, b] = [one[key], other[key]];
    if (a !== b && (typeof a !== "object" || JSON.stringify(a) !== JSON.stringify(b))) return false;
  }
  return true;
}

function withUse(process: Process, before: Process): Process {
  if (process.status === "ended") return process;
  return {
    ...process,
    rss_bytes: process.rss_bytes ?? before.rss_bytes,
    cpu_seconds: process.cpu_seconds ?? before.cpu_seconds,
    ports: process.ports ?? before.ports,
  };
}

function applyAll(batch: HoldfastEvent[]): void {
  let isNew = false;
  let isChanged = false;
  for (const event of batch) {
    if (event.type === "session.rename") {
      rename(event.was as string, event.session ?? "");
      isChanged = true;
    }
    if (!event.type.startsWith("process.") || typeof event.id !== "string") continue;
    const before = all.get(event.id);
    if (event.type === "process.removed") {
      isChanged = all.delete(event.id) || isChanged;
      dirty.delete(event.id);
      if (isRefreshing) removed.add(event.id);
      continue;
    }
    const change = changeOf(event);
    if (before === undefined && event.type !== "process.started" && event.type !== "process.queued") continue;
    // An older event than the object itself: pages that were read later have it already.
    if (before?.ended_at && event.type !== "process.started" && event.ts < before.ended_at) continue;
    isNew ||= before === undefined;
    all.set(event.id, { ...(before ?? stubOf(event)), ...change });
    isChanged = true;
    dirty.add(event.id);
  }
  if (isChanged) publish(isNew);
}

function rename(was: string, to: string): void {
  for (const [id, process] of all) if (process.session === was) all.set(id, { ...process, session: to });
}

function publish(isNew: boolean): void {
  if (isNew || counted !== all.size) members.set(members.get() + 1);
  counted = all.size;
  processes.set({ version: processes.get().version + 1, all });
}

let counted = 0;

let beat = 0;
let isRefreshing = false;
/** Removed while a refresh was under way: what that says of them is old. */
const removed = new Set<string>();

/** Reads again what changed, rows on the screen first; of a storm of others only some. */
async function refresh(): Promise<void> {
  soon = undefined;
  beat += 1;
  if (document.hidden || isRefreshing || link.get() !== "open") return;
  if (beat % 2 === 0) for (const id of visible) if (all.get(id)?.status !== "ended") dirty.add(id);
  if (dirty.size === 0) return;
  const first = [...dirty].filter((id) => visible.has(id));
  const ids = [...first, ...[...dirty].filter((id) => !visible.has(id))].slice(0, REFRESH_BATCH);
  dirty = dirty.size > 10 * REFRESH_BATCH ? new Set() : dirty;
  for (const id of ids) dirty.delete(id);
  isRefreshing = true;
  try {
    const { processes: found, unknown } = await glance(ids, HISTORY);
    for (const listener of measured) listener(found);
    putAll(
      found.filter((process) => !removed.has(process.id)),
      true,
    );
    dropRows(unknown);
  } catch {
    for (const id of ids) dirty.add(id);
  } finally {
    isRefreshing = false;
    removed.clear();
  }
}
