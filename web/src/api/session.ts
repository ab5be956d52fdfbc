/** Who this page is to the daemon: the secret of this tab, and how to get one from a one-time link or another tab. */
import { Problem, problemOf } from "./problem";

const KEY = "holdfast-secret";
const CHANNEL = "holdfast-session";
/** How long the other tabs have to answer. */
const ANSWER_TIMEOUT = 250;

export interface DashboardSession {
  read_only: boolean;
  instance: string;
  version: string;
  user?: string;
  host?: string;
}

interface Login extends DashboardSession {
  secret: string;
}

let secret: string | null = sessionStorage.getItem(KEY);
const channel = new BroadcastChannel(CHANNEL);

channel.onmessage = (message: MessageEvent<{ ask?: boolean; secret?: string }>) => {
  if (message.data.ask && secret !== null) channel.postMessage({ secret });
};

function keep(found: string | null): void {
  secret = found;
  if (found === null) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, found);
}

/** The headers of every request. */
export function authHeaders(): Record<string, string> {
  return secret === null ? {} : { "Holdfast-Secret": secret };
}

/** A WebSocket of the daemon, with the secret as a subprotocol. */
export function openSocket(path: string, Socket: typeof WebSocket = WebSocket): WebSocket {
  const url = new URL(path, location.href);
  url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  const protocols = secret === null ? ["holdfast.v1"] : ["holdfast.v1", `holdfast.secret.${secret}`];
  return new Socket(url, protocols);
}

/** Signs in with the key of the link, with what this tab has, or with the secret of another tab. */
export async function signIn(): Promise<DashboardSession> {
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  if (key !== null) {
    history.replaceState(history.state, "", location.pathname + location.search);
    return login({ key });
  }
  if (secret === null) keep(await askOtherTabs());
  try {
    return await whoAmI();
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 401) throw error;
    const other = await askOtherTabs();
    if (other === null || other === secret) {
      keep(null);
      throw error;
    }
    keep(other);
    return whoAmI();
  }
}

const LOGIN = "/api/v1/dashboard/login";

/** Whether a password is set: it can be typed in the place of a link. */
export async function hasPassword(): Promise<boolean> {
  const answer = await fetch(LOGIN);
  return answer.ok && ((await answer.json()) as { password: boolean }).password;
}

export async function login(proof: { key: string } | { password: string }): Promise<DashboardSession> {
  const answer = await fetch(LOGIN, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(proof),
  });
  if (!answer.ok) {
    // The link was opened before, in a tab that is still there.
    if (secret !== null && "key" in proof) return whoAmI();
    throw await problemOf(answer);
  }
  const session = (await answer.json()) as Login;
  keep(session.secret);
  return session;
}

export async function whoAmI(): Promise<DashboardSession> {
  // The proxy of `npm run dev` has the token: there is no session.
  if (import.meta.env.DEV) return { read_only: false, instance: "development", version: "" };
  const answer = await fetch("/api/v1/dashboard/session", { headers: authHeaders() });
  if (!answer.ok) throw await problemOf(answer);
  return (await answer.json()) as DashboardSession;
}

export async function signOut(): Promise<void> {
  await fetch("/api/v1/dashboard/logout", { method: "POST", headers: authHeaders() });
  keep(null);
  location.reload();
}

function askOtherTabs(): Promise<string | null> {
  return new Promise((resolve) => {
    const asking = new BroadcastChannel(CHANNEL);
    const timer = setTimeout(() => done(null), ANSWER_TIMEOUT);
    const done = (found: string | null) => {
      clearTimeout(timer);
      asking.close();
      resolve(found);
    };
    asking.onmessage = (message: MessageEvent<{ secret?: string }>) => {
      if (message.data.secret) done(message.data.secret);
    };
    asking.postMessage({ ask: true });
  });
}
