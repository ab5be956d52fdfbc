/** One WebSocket of events, kept open: after a cut it goes on behind the last number. */
import { eventsPath } from "../api/operations";
import { openSocket } from "../api/session";
import type { HoldfastEvent } from "../api/types";

const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 5000;

export interface FeedHandlers {
  events(batch: HoldfastEvent[]): void;
  /** The feed is open; `isFresh` where it did not go on from an earlier number. */
  open(isFresh: boolean): void;
  closed(): void;
}

export class EventFeed {
  private socket: WebSocket | null = null;
  private since: number | null = null;
  private pause = FIRST_PAUSE;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isStopped = false;
  /** Sockets in a row that were closed before they were open: the number may not be valid any more. */
  private refused = 0;

  constructor(
    private readonly pattern: string,
    private readonly handlers: FeedHandlers,
  ) {}

  start(since: number | null = null): void {
    this.since = since;
    this.connect();
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
    this.socket?.close();
  }

  /** Tries now instead of after the pause. */
  retry(): void {
    if (this.socket !== null || this.isStopped) return;
    clearTimeout(this.timer);
    this.pause = FIRST_PAUSE;
    this.connect();
  }

  /** The connection is dead, though the socket was not closed: opens another one. */
  restart(): void {
    const socket = this.socket;
    if (socket === null || this.isStopped) return;
    this.socket = null;
    socket.onmessage = null;
    socket.close();
    this.handlers.closed();
    this.timer = setTimeout(() => this.connect(), this.pause);
  }

  private connect(): void {
    const asked = this.since;
    const socket = openSocket(eventsPath(this.pattern, asked));
    this.socket = socket;
    let wasOpen = false;
    socket.onmessage = (message: MessageEvent<string>) => {
      const said = JSON.parse(message.data) as HoldfastEvent[] | { type: string; since?: number };
      if (Array.isArray(said)) {
        this.take(said);
      } else if (said.type === "hello" && said.since !== undefined) {
        wasOpen = true;
        this.refused = 0;
        this.pause = FIRST_PAUSE;
        this.since = said.since;
        this.handlers.open(asked === null);
      }
    };
    socket.onclose = () => {
      if (this.socket !== socket) return;
      this.socket = null;
      if (this.isStopped) return;
      if (!wasOpen && ++this.refused > 3) this.since = null;
      this.handlers.closed();
      this.timer = setTimeout(() => this.connect(), this.pause);
      this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
    };
  }

  private take(batch: HoldfastEvent[]): void {
    const after = this.since ?? 0;
    const fresh = batch.filter((event) => event.seq === undefined || event.seq > after);
    for (const event of fresh) if (event.seq !== undefined) this.since = Math.max(this.since ?? 0, event.seq);
    if (fresh.length) this.handlers.events(fresh);
  }
}
