/** The operations that pages use, one function each. */
import { getJSON, postJSON, remove, request, withQuery } from "./http";
import type {
  Agent,
  AgentLogEntry,
  Approval,
  Backend,
  DeadLetter,
  EventPage,
  HoldfastEvent,
  KillResult,
  Match,
  Notification,
  Plugin,
  Process,
  Screen,
  Session,
  Sink,
  SinkResult,
  Theme,
  TimeEntry,
  Top,
  Tree,
} from "./types";

const V1 = "/api/v1";
const of = (id: string) => `${V1}/processes/${encodeURIComponent(id)}`;
const inSession = (session: string) => `${V1}/sessions/${encodeURIComponent(session)}`;

export const processPage = (after: string | null, signal?: AbortSignal) =>
  getJSON<{ processes: Process[]; next: string | null }>(
    `${V1}/processes`,
    { all: true, used: false, limit: 1000, after },
    signal,
  );

/** Several processes as they are now, with what they use and their last lines; ids that are unknown are named. */
export const glance = (processes: string[], history: number) =>
  postJSON<{ processes: GlancedProcess[]; unknown: string[] }>(`${V1}/glance`, { processes, history });

export interface GlancedProcess extends Process {
  last_line: string;
  cpu_percent: number | null;
  history: { ago?: number[]; cpu_percent?: number[]; rss_bytes?: number[] };
}

export interface ProcessDetails extends Process {
  seen: string;
  tree?: Tree[];
  spec?: Record<string, unknown>;
}

export const readProcess = (id: string, signal?: AbortSignal) => getJSON<ProcessDetails>(of(id), {}, signal);
export const readDetails = (id: string) => getJSON<ProcessDetails>(of(id), { tree: true, spec: true });
export const explain = (id: string) =>
  getJSON<{ summary: string; details: string[]; next: string[]; lines: string[] }>(`${of(id)}/why`);

export interface StartRequest {
  command: string;
  name?: string;
  session?: string;
  task?: string;
  cwd?: string;
  pty?: boolean;
  restart?: string;
  env?: Record<string, string>;
}
export const start = (body: StartRequest) => postJSON<Process>(`${V1}/processes`, body);
export const restart = (id: string, run: number | null) =>
  postJSON<{ process: Process }>(`${of(id)}/restart`, run === null ? {} : { run });
export const kill = (id: string, grace?: number) =>
  postJSON<KillResult>(`${of(id)}/kill`, grace === undefined ? {} : { grace });
export const signal = (id: string, name: string) => postJSON<KillResult>(`${of(id)}/kill`, { signal: name });
export const killMany = (processes: string[]) => postJSON<{ results: KillResult[] }>(`${V1}/kill`, { processes });
/** Starts `holdfast up -d` or `holdfast down`; its output says how that goes. */
export const controlProject = async (project: string, action: "up" | "down") =>
  (await postJSON<{ process: Process }>(`${V1}/projects/${encodeURIComponent(project)}/control`, { action })).process;
export const removeMany = (processes: string[]) => postJSON<{ removed: string[] }>(`${V1}/remove`, { processes });
export const forget = (id: string) => remove(of(id));
export const transfer = (id: string, to: string) => postJSON<{ process: Process }>(`${of(id)}/transfer`, { to });
export const send = (id: string, text: string, secret = false) =>
  postJSON<{ status: string }>(`${of(id)}/stdin`, secret ? { text, enter: true, secret } : { text, enter: true });

export const logPath = (id: string) => `${of(id)}/log`;
export const attachPath = (id: string, from: number) => `${of(id)}/attach?from=${from}`;
export const logTimes = (id: string, stream: string, from: number, upto: number | undefined, signal?: AbortSignal) =>
  getJSON<{ times: TimeEntry[]; known: boolean }>(`${of(id)}/log/times`, { stream, from, upto }, signal);
/** The byte at which the last line begins that was written until then. */
export const lineAtTime = async (id: string, time: number) => {
  const answer = await request(withQuery(logPath(id), { to_time: time, lines: 1, bytes: 0, view: "raw" }), {
    headers: { Accept: "application/octet-stream" },
  });
  return Number(answer.headers.get("holdfast-start") ?? 0);
};
export const castPath = (id: string) => `${of(id)}/cast`;
export const processEvents = (id: string, signal?: AbortSignal) =>
  getJSON<{ events: HoldfastEvent[]; more: boolean }>(`${of(id)}/events`, { limit: 2000 }, signal);
export const screen = (id: string) =>
  getJSON<{ screen: Screen; process: Process }>(`${of(id)}/screen`, { ansi: true });

export interface SearchPage {
  matches: Match[];
  count: number;
  done: boolean;
  next: { from: number | null; line: number | null };
  total: number;
}
export interface SearchQuery {
  pattern: string;
  fixed: boolean;
  ignore_case: boolean;
  stream: string;
  from: number;
  upto: number;
  limit: number;
}
export const search = (id: string, query: SearchQuery, signal: AbortSignal) =>
  getJSON<SearchPage>(`${of(id)}/search`, { ...query }, signal);

export const top = () => getJSON<{ processes: Top[] }>(`${V1}/top`, { history: 0 });

export const approvals = (all: boolean, signal?: AbortSignal) =>
  getJSON<{ approvals: Approval[] }>(`${V1}/approvals`, { all }, signal);
export const approve = (id: string, scope: string) =>
  postJSON<Approval>(`${V1}/approvals/${id}/approve`, { scope, by: "dashboard" });
export const deny = (id: string) => postJSON<Approval>(`${V1}/approvals/${id}/deny`, { by: "dashboard" });
export const approvalShown = (id: string) => postJSON<void>(`${V1}/approvals/${id}/shown`);
export const typePassword = (id: string, password: string) =>
  postJSON<Approval>(`${V1}/approvals/${id}/password`, { data: toBase64(password), by: "dashboard" });

export const sessions = (signal?: AbortSignal) => getJSON<{ sessions: Session[] }>(`${V1}/sessions`, {}, signal);
export const inbox = (session: string, signal?: AbortSignal) =>
  getJSON<{ notifications: Notification[] }>(`${inSession(session)}/inbox`, { limit: 200, peek: true }, signal);
export const acknowledge = (session: string, ids: string[]) =>
  postJSON<{ acked: string[] }>(`${inSession(session)}/inbox/ack`, { ids });
export const renameSession = (session: string, to: string) => postJSON<object>(`${inSession(session)}/rename`, { to });
export const endSession = (session: string, to: string | null, keep: boolean) =>
  postJSON<{ results: KillResult[]; passed: { id: string; to: string }[]; left: string[] }>(
    `${inSession(session)}/end`,
    { ...(to ? { to } : {}), ...(keep ? { keep } : {}) },
  );

export const agents = (signal?: AbortSignal) =>
  getJSON<{ agents: Agent[]; model: string | null }>(`${V1}/agents`, {}, signal);
export interface AgentLogPage {
  entries: AgentLogEntry[];
  more: boolean;
  newest: number;
}
export const agentLog = (session: string, query: { after?: number; before?: number }, signal?: AbortSignal) =>
  getJSON<AgentLogPage>(`${inSession(session)}/agent/log`, { limit: 200, ...query }, signal);
/** The same id again is the same message. */
export const sendToAgent = (session: string, id: string, text: string) =>
  postJSON<{ entry: number }>(`${inSession(session)}/agent/messages`, { id, text });
export const setAgentModel = (session: string, model: string) =>
  postJSON<void>(`${inSession(session)}/agent/settings`, { model });
export const startAgent = (session: string) => postJSON<{ started: boolean }>(`${inSession(session)}/agent/start`, {});
export const controlAgent = (session: string, action: "interrupt" | "compact" | "stop") =>
  postJSON<void>(`${inSession(session)}/agent/control`, { action });

export const events = (pattern: string, since: number, limit: number, signal?: AbortSignal) =>
  getJSON<EventPage>(`${V1}/events`, { pattern, since, limit }, signal);
export const eventsPath = (pattern: string, since: number | null) =>
  `${V1}/events?pattern=${encodeURIComponent(pattern)}${since === null ? "" : `&since=${since}`}`;

export const backends = (signal?: AbortSignal) => getJSON<{ backends: Backend[] }>(`${V1}/backends`, {}, signal);
export const stopBackend = (name: string) =>
  postJSON<{ closed: number; ended: number; kept: number }>(`${V1}/backends/${encodeURIComponent(name)}/stop`, {});
export const cleanBackends = () => postJSON<{ removed: string[]; failed: string[] }>(`${V1}/backends/clean`);

export interface DaemonStatus {
  pid: number;
  keeper_pid: number | null;
  version: string;
  home: string;
  started_at: number;
  held: number;
  ended: number;
  log_bytes: number | null;
  log_total: number | null;
  events: number;
}
export const daemon = (signal?: AbortSignal) => getJSON<DaemonStatus>(`${V1}/daemon`, {}, signal);
export interface Setting {
  key: string;
  kind: string;
  value: string;
  default: string;
  about: string;
}
export const settings = (signal?: AbortSignal) =>
  getJSON<{ config: string; settings: Setting[] }>(`${V1}/settings`, {}, signal);
export const newLink = (read_only: boolean) => postJSON<{ link: string }>(`${V1}/dashboard/links`, { read_only });
export const doctor = (signal?: AbortSignal) =>
  getJSON<{ checks: { name: string; ok: boolean; detail: string; degrades: string | null }[] }>(
    `${V1}/daemon/doctor`,
    {},
    signal,
  );
export const sinks = (signal?: AbortSignal) =>
  getJSON<{ sinks: Sink[]; config: string; trouble: string | null }>(`${V1}/sinks`, {}, signal);
export const deadLetters = (signal?: AbortSignal) =>
  getJSON<{ dead: DeadLetter[] }>(`${V1}/sinks/dead`, { limit: 100 }, signal);
export const testSink = (name: string) => postJSON<{ results: SinkResult[] }>(`${V1}/sinks/test`, { name });
export const retryDead = (ids: number[]) => postJSON<{ retried: number[] }>(`${V1}/sinks/retry`, { ids });

export const plugins = (signal?: AbortSignal) => getJSON<{ plugins: Plugin[] }>(`${V1}/dashboard/plugins`, {}, signal);
export const setPlugin = (name: string, enabled: boolean) =>
  postJSON<{ plugin: Plugin }>(`${V1}/dashboard/plugins/${encodeURIComponent(name)}`, { enabled });
export const themes = (signal?: AbortSignal) => getJSON<{ themes: Theme[] }>(`${V1}/dashboard/themes`, {}, signal);

function toBase64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
