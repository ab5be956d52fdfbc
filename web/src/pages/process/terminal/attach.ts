/**
 * A terminal attached to a process: the exact screen first, then every byte behind it.
 *
 * After a cut it attaches again behind the last byte that it has, so that nothing is lost and nothing is drawn twice.
 */
import type { Terminal } from "@xterm/xterm";
import { attachPath, screen } from "../../../api/operations";
import { sentenceOf } from "../../../api/problem";
import { openSocket } from "../../../api/session";
import type { Process, Screen } from "../../../api/types";

const INPUT = 0;
const OUTPUT = 1;
const CONTROL = 3;
const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 5000;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export type AttachState = "connecting" | "attached" | "reconnecting" | "ended";

interface Control {
  type: string;
  message?: string;
  next?: string;
  process?: Process;
}

/** The bytes that draw a screen on an empty terminal. */
export function restoring(shown: Screen): string {
  const { row, col, visible } = shown.cursor as { row: number; col: number; visible: boolean };
  const enter = shown.alternate ? "\x1b[?1049h" : "";
  const modes = shown.modes.map((mode) => `\x1b[?${mode}h`).join("");
  const hidden = visible ? "\x1b[?25h" : "\x1b[?25l";
  return `\x1bc${enter}${shown.lines.join("\x1b[0m\r\n")}\x1b[0m\x1b[${row + 1};${col + 1}H${hidden}${modes}`;
}

export class Attachment {
  private socket: WebSocket | null = null;
  private offset = 0;
  private written = 0;
  private pause = FIRST_PAUSE;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isStopped = false;
  private hasScreen = false;

  constructor(
    private readonly id: string,
    private readonly terminal: Terminal,
    private readonly onState: (state: AttachState, error: string | null) => void,
  ) {}

  start(): void {
    void this.connect();
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
    this.socket?.close();
  }

  type(data: string): void {
    this.send(INPUT, encoder.encode(data));
  }

  typeBinary(data: string): void {
    this.send(INPUT, Uint8Array.from(data, (character) => character.charCodeAt(0)));
  }

  resize(cols: number, rows: number): void {
    this.control({ type: "resize", cols, rows });
  }

  private async connect(): Promise<void> {
    try {
      if (!this.hasScreen) {
        const { screen: shown, process } = await screen(this.id);
        if (this.isStopped) return;
        this.terminal.resize(shown.cols, shown.rows);
        this.terminal.write(restoring(shown));
        this.offset = shown.at;
        this.hasScreen = true;
        if (process.status === "ended") return this.onState("ended", null);
      }
      this.open();
    } catch (error) {
      if (!this.isStopped) this.retry(sentenceOf(error));
    }
  }

  private open(): void {
    const socket = openSocket(attachPath(this.id, this.offset));
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    this.written = 0;
    let hasEnded = false;
    socket.onmessage = (message: MessageEvent<ArrayBuffer>) => {
      const data = new Uint8Array(message.data);
      if (data[0] === OUTPUT) this.draw(socket, data.subarray(1));
      else if (data[0] === CONTROL) {
        const said = JSON.parse(decoder.decode(data.subarray(1))) as Control;
        if (said.type === "hello") {
          this.pause = FIRST_PAUSE;
          this.onState("attached", null);
        } else if (said.type === "exit") {
          hasEnded = true;
          this.onState("ended", null);
        } else if (said.type === "gap") this.hasScreen = false;
        else if (said.type === "error") this.onState("attached", said.message ?? "refused");
      }
    };
    socket.onclose = () => {
      if (this.socket !== socket) return;
      this.socket = null;
      if (!this.isStopped && !hasEnded) this.retry(null);
    };
  }

  private retry(error: string | null): void {
    this.onState("reconnecting", error);
    this.timer = setTimeout(() => void this.connect(), this.pause);
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
  }

  /** The daemon holds back what was not drawn yet: a fast program cannot fill the memory of the page. */
  private draw(socket: WebSocket, data: Uint8Array): void {
    this.offset += data.length;
    this.terminal.write(data, () => {
      this.written += data.length;
      if (socket === this.socket) this.control({ type: "ack", bytes: this.written });
    });
  }

  private control(message: object): void {
    this.send(CONTROL, encoder.encode(JSON.stringify(message)));
  }

  private send(channel: number, data: Uint8Array): void {
    if (this.socket?.readyState !== WebSocket.OPEN) return;
    const framed = new Uint8Array(data.length + 1);
    framed[0] = channel;
    framed.set(data, 1);
    this.socket.send(framed);
  }
}
