/** Scripts of plugins that blocked the page: each is marked while it runs, and a mark that stays names it. */

const MARK = "holdfast-plugin-running";
const BLOCKED = "holdfast-plugins-blocked";
const TAB = "holdfast-tab";
/** A script of another tab may still be loading for this long. */
const GRACE = 5000;

interface Mark {
  name: string;
  tab: string;
  at: number;
}

function tabId(): string {
  const id = sessionStorage.getItem(TAB) ?? String(Math.random()).slice(2);
  sessionStorage.setItem(TAB, id);
  return id;
}

function read<T>(key: string, empty: T): T {
  try {
    return (JSON.parse(localStorage.getItem(key) ?? "null") as T | null) ?? empty;
  } catch {
    return empty;
  }
}

export const blocked = (): string[] => read<string[]>(BLOCKED, []);

/** The plugin that blocked the last load, now among the blocked ones; null where none did. */
export function findBlocked(): string | null {
  const mark = read<Mark | null>(MARK, null);
  if (mark === null || (mark.tab !== tabId() && Date.now() - mark.at < GRACE)) return null;
  localStorage.removeItem(MARK);
  localStorage.setItem(BLOCKED, JSON.stringify([...new Set([...blocked(), mark.name])]));
  return mark.name;
}

export function unblock(name: string): void {
  localStorage.setItem(BLOCKED, JSON.stringify(blocked().filter((one) => one !== name)));
}

export function begin(name: string): void {
  localStorage.setItem(MARK, JSON.stringify({ name, tab: tabId(), at: Date.now() } satisfies Mark));
}

export function end(): void {
  if (read<Mark | null>(MARK, null)?.tab === tabId()) localStorage.removeItem(MARK);
}

// A page that can still say goodbye was not blocked, only left early.
addEventListener("pagehide", end);
