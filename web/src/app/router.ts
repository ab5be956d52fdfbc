/** The path of the page, without a library: links change it, `usePath` follows it. */
import { Store, useStore } from "../feed/store";

export interface Place {
  path: string;
  query: URLSearchParams;
}

const read = (): Place => ({ path: location.pathname, query: new URLSearchParams(location.search) });
const place = new Store<Place>(read());

addEventListener("popstate", () => place.set(read()));

export function navigate(to: string, replace = false): void {
  if (to === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", to);
  place.set(read());
  if (!replace) scrollTo(0, 0);
}

/** Changes the query in place; null removes a key. */
export function setQuery(changes: Record<string, string | null>): void {
  const query = new URLSearchParams(location.search);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null) query.delete(key);
    else query.set(key, value);
  }
  const text = query.toString();
  navigate(location.pathname + (text ? `?${text}` : ""), true);
}

export const usePlace = () => useStore(place);
export const processPath = (id: string, tab = "") => `/processes/${id}${tab ? `/${tab}` : ""}`;
export const chatPath = (session: string) => `/chat/${encodeURIComponent(session)}`;
