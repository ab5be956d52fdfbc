/** Requests to the daemon. They name no session: what a user looks at consumes nothing. */
import { problemOf } from "./problem";
import { authHeaders } from "./session";

export type Query = Record<string, string | number | boolean | null | undefined>;

export function withQuery(path: string, query: Query = {}): string {
  const words = Object.entries(query)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  return words.length ? `${path}?${words.join("&")}` : path;
}

export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const answer = await fetch(path, { ...init, headers: { ...authHeaders(), ...(init.headers as object) } });
  if (!answer.ok) throw await problemOf(answer);
  return answer;
}

export async function getJSON<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const answer = await request(withQuery(path, query), { signal, headers: { Accept: "application/json" } });
  return (await answer.json()) as T;
}

export async function postJSON<T>(path: string, body: object = {}, signal?: AbortSignal): Promise<T> {
  const answer = await request(path, {
    method: "POST",
    signal,
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: JSON.stringify(body),
  });
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

export async function remove(path: string): Promise<void> {
  await request(path, { method: "DELETE" });
}
