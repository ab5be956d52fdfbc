/**
 * Conversations with agents. What was said is read from the session log, by the numbers of its entries: nothing is shown
 * twice, and nothing is missing after a cut. What is being said comes from events that are not kept (`tui.*`), as drafts;
 * the entry of the log takes the place of its draft.
 */
import { agentLog, agents as readAgents, sendToAgent } from "../api/operations";
import { Problem, sentenceOf } from "../api/problem";
import type { Agent, AgentLogEntry, HoldfastEvent } from "../api/types";
import { EventFeed } from "./events";
import { onEvent } from "./processes";
import { Store } from "./store";

const PATTERN = "agent.* tui.** events.*";
/** What is streamed is drawn at most this often. */
const FRAME = 80;
const SETTLE = 300;
/** An event may be lost with the daemon: the log is looked at again after this time. */
const LOOK_AGAIN = 4000;
const RETRY = 2000;

export interface AgentList {
  agents: Agent[];
  /** That of the configuration file; null where none is configured. */
  model: string | null;
}

/** Null until it was read. */
export const agentList = new Store<AgentList | null>(null);
export const agentListError = new Store<string | null>(null);

/** An answer that is being written. `isCut`: its beginning was not seen here. */
export interface Draft {
  entry: number;
  text: string;
  reasoning: string;
  tool: string | null;
  isCut: boolean;
  retry: string | null;
}

/** A message that is not in the log yet. */
export interface Outgoing {
  id: string;
  text: string;
  /** Why the daemon refused it. */
  error: string | null;
}

export interface Conversation {
  /** Null until the log was read. */
  entries: readonly AgentLogEntry[] | null;
  hasOlder: boolean;
  error: string | null;
  drafts: readonly Draft[];
  outgoing: readonly Outgoing[];
  /** Seconds that calls have run, by the id of the call. */
  progress: ReadonlyMap<string, number>;
  /** The last entry that was there when the page was opened: what comes later is announced. */
  openedAt: number;
}

const keyOf = (session: string) => `holdfast-outgoing ${session}`;

function kept(session: string): Outgoing[] {
  try {
    return JSON.parse(sessionStorage.getItem(keyOf(session)) ?? "[]") as Outgoing[];
  } catch {
    return [];
  }
}

/** One conversation while it is on the screen. */
export class ChatFeed {
  readonly state: Store<Conversation>;
  private reading: Promise<void> | null = null;
  private isAskedAgain = false;
  private isSending = false;
  private isStopped = false;
  private frame: ReturnType<typeof setTimeout> | undefined;
  private readonly timer: ReturnType<typeof setInterval>;
  private readonly drafts = new Map<number, Draft>();

  constructor(readonly session: string) {
    this.state = new Store<Conversation>({
      entries: null,
      hasOlder: false,
      error: null,
      drafts: [],
      outgoing: kept(session),
      progress: new Map(),
      openedAt: 0,
    });
    // A session without a log gets its first entry by what is sent from here, or with an event.
    this.timer = setInterval(() => !document.hidden && this.state.get().entries?.length !== 0 && this.read(), LOOK_AGAIN);
    this.read();
    void this.flush();
  }

  stop(): void {
    this.isStopped = true;
    clearInterval(this.timer);
    clearTimeout(this.frame);
  }

  /** Reads what is new in the log; several calls read once. */
  read(): void {
    this.isAskedAgain = true;
    this.reading ??= this.readAll().finally(() => {
      this.reading = null;
      if (this.isAskedAgain && !this.isStopped) this.read();
    });
  }

  private async readAll(): Promise<void> {
    while (this.isAskedAgain && !this.isStopped) {
      this.isAskedAgain = false;
      try {
        const before = this.state.get().entries;
        const page = await agentLog(this.session, before?.length ? { after: before.at(-1)!.id } : {});
        if (before?.length && page.more) this.isAskedAgain = true;
        this.add(page.entries, before?.length ? undefined : page.more);
      } catch (failed) {
        if (failed instanceof Problem && failed.status === 404) this.add([], false);
        else {
          this.change({ error: sentenceOf(failed) });
          await new Promise((resolve) => setTimeout(resolve, RETRY));
        }
      }
    }
  }

  async readOlder(): Promise<number> {
    const first = this.state.get().entries?.[0]?.id;
    if (first === undefined) return 0;
    const page = await agentLog(this.session, { before: first });
    this.change({ entries: [...page.entries, ...(this.state.get().entries ?? [])], hasOlder: page.more });
    return page.entries.length;
  }

  private add(found: AgentLogEntry[], hasOlder: boolean | undefined): void {
    const now = this.state.get();
    const newest = now.entries?.at(-1)?.id ?? 0;
    const fresh = found.filter((entry) => entry.id > newest);
    const upto = fresh.at(-1)?.id ?? newest;
    for (const entry of this.drafts.keys()) if (entry <= upto) this.drafts.delete(entry);
    const arrived = new Set(fresh.map((entry) => entry.content.input));
    const outgoing = now.outgoing.filter((one) => !arrived.has(one.id));
    if (outgoing.length !== now.outgoing.length) this.keep(outgoing);
    this.change({
      entries: fresh.length || now.entries === null ? [...(now.entries ?? []), ...fresh] : now.entries,
      hasOlder: hasOlder ?? now.hasOlder,
      error: null,
      drafts: [...this.drafts.values()],
      outgoing,
      openedAt: now.entries === null ? upto : now.openedAt,
    });
  }

  private change(changes: Partial<Conversation>): void {
    if (!this.isStopped) this.state.set({ ...this.state.get(), ...changes });
  }

  // What is being said.

  take(event: HoldfastEvent): void {
    const entry = typeof event.entry === "number" ? event.entry : null;
    const text = typeof event.text === "string" ? event.text : "";
    switch (event.type) {
      case "tui.message.start":
        if (entry !== null) this.draft(entry, (draft) => (draft.isCut = false));
        break;
      case "tui.message.delta":
        if (entry !== null) this.draft(entry, (draft) => (draft.text += text));
        break;
      case "tui.reasoning.delta":
        if (entry !== null) this.draft(entry, (draft) => (draft.reasoning += text));
        break;
      case "tui.tool.generating":
        if (entry !== null) this.draft(entry, (draft) => (draft.tool = String(event.name ?? "")));
        break;
      case "tui.error":
        if (entry !== null && event.retry_in !== undefined)
          this.draft(entry, (draft) => {
            draft.text = draft.reasoning = "";
            draft.tool = null;
            draft.retry = `${String(event.message)}; again in ${String(event.retry_in)} s`;
          });
        break;
      case "tui.tool.progress": {
        const progress = new Map(this.state.get().progress);
        progress.set(String(event.call), Number(event.seconds));
        this.change({ progress });
        break;
      }
      default:
        this.read();
    }
  }

  /** The feed was cut, or events were dropped: pieces of drafts are missing. */
  cut(): void {
    for (const draft of this.drafts.values()) draft.isCut = true;
    this.draw();
  }

  private draft(entry: number, edit: (draft: Draft) => void): void {
    if (entry <= (this.state.get().entries?.at(-1)?.id ?? 0)) return;
    const found = this.drafts.get(entry) ?? { entry, text: "", reasoning: "", tool: null, isCut: true, retry: null };
    found.retry = null;
    edit(found);
    this.drafts.set(entry, found);
    this.draw();
  }

  private draw(): void {
    this.frame ??= setTimeout(() => {
      this.frame = undefined;
      this.change({ drafts: [...this.drafts.values()].map((draft) => ({ ...draft })) });
    }, FRAME);
  }

  // What the user says.

  send(text: string): void {
    const random = crypto.getRandomValues(new Uint8Array(8));
    const id = `in_${[...random].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
    const outgoing = [...this.state.get().outgoing, { id, text, error: null }];
    this.keep(outgoing);
    this.change({ outgoing });
    void this.flush();
  }

  /** Takes a message that was refused back. */
  withdraw(id: string): string {
    const found = this.state.get().outgoing.find((one) => one.id === id);
    const outgoing = this.state.get().outgoing.filter((one) => one.id !== id);
    this.keep(outgoing);
    this.change({ outgoing });
    return found?.text ?? "";
  }

  sendAgain(id: string): void {
    this.mark(id, null);
    void this.flush();
  }

  /** Sends one after the other, until the daemon has each. Its id makes it one message, however often it is sent. */
  async flush(): Promise<void> {
    if (this.isSending) return;
    this.isSending = true;
    try {
      for (;;) {
        const next = this.state.get().outgoing.find((one) => one.error === null);
        if (!next || this.isStopped) return;
        try {
          await sendToAgent(this.session, next.id, next.text);
          this.read();
          await this.reading;
          this.withdraw(next.id);
        } catch (failed) {
          // Where the daemon does not answer, or stops, the message waits for the next one.
          if (failed instanceof Problem && failed.status !== 503) this.mark(next.id, sentenceOf(failed));
          else await new Promise((resolve) => setTimeout(resolve, RETRY / 4));
        }
      }
    } finally {
      this.isSending = false;
    }
  }

  private mark(id: string, error: string | null): void {
    const outgoing = this.state.get().outgoing.map((one) => (one.id === id ? { ...one, error } : one));
    this.keep(outgoing);
    this.change({ outgoing });
  }

  private keep(outgoing: readonly Outgoing[]): void {
    if (outgoing.length) sessionStorage.setItem(keyOf(this.session), JSON.stringify(outgoing));
    else sessionStorage.removeItem(keyOf(this.session));
  }
}

// All conversations.

const open = new Set<ChatFeed>();
let users = 0;
let feed: EventFeed | null = null;
let settling: ReturnType<typeof setTimeout> | undefined;
let leave: (() => void) | null = null;

async function readList(): Promise<void> {
  try {
    agentList.set(await readAgents());
    agentListError.set(null);
  } catch (failed) {
    agentListError.set(sentenceOf(failed));
  }
}

export function readListSoon(pause = SETTLE): void {
  settling ??= setTimeout(() => {
    settling = undefined;
    void readList();
  }, pause);
}

/** The list and the events, while a page shows them. Returns what ends it. */
export function followAgents(): () => void {
  if (users++ === 0) {
    feed = new EventFeed(PATTERN, {
      open: () => {
        readListSoon(0);
        for (const one of open) one.read();
      },
      closed: () => {
        for (const one of open) one.cut();
      },
      events: (batch) => {
        for (const event of batch) {
          if (event.type === "events.dropped") for (const one of open) one.cut();
          for (const one of open) if (one.session === event.session) one.take(event);
          if (event.type.startsWith("agent.") || event.type === "tui.tool.start") readListSoon();
        }
      },
    });
    feed.start();
    leave = onEvent((event) => {
      if (/^(approval|process|session)\./.test(event.type)) readListSoon();
    });
    void readList();
  }
  return () => {
    if (--users > 0) return;
    feed?.stop();
    leave?.();
    feed = leave = null;
  };
}

/** A conversation, while it is shown. */
export function openChat(session: string): ChatFeed {
  const chat = new ChatFeed(session);
  open.add(chat);
  return chat;
}

export function closeChat(chat: ChatFeed): void {
  open.delete(chat);
  chat.stop();
}
