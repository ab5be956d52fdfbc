/** The bytes of a log, by offset. A few chunks are kept, however large the log is. */
import { request, withQuery } from "../../../api/http";
import { logPath } from "../../../api/operations";

export const CHUNK = 65536;
const MOST_CHUNKS = 24;

export interface Extent {
  /** Bytes that are not kept any more: the log begins here. */
  dropped: number;
  total: number;
}

export interface Piece extends Extent {
  start: number;
  data: Uint8Array<ArrayBuffer>;
}

export class LogBytes {
  dropped = 0;
  total = 0;
  private chunks = new Map<number, Uint8Array<ArrayBuffer>>();

  constructor(
    readonly id: string,
    readonly stream: string,
  ) {}

  /** What was written behind `from`, `most` bytes of it; waits for it. */
  async next(from: number, most: number, wait: number, signal: AbortSignal): Promise<Piece> {
    return this.read({ from, bytes: most, wait }, signal);
  }

  /** Reads what a window around this byte will need, while it is not known yet how long the log is. */
  async prefetch(offset: number, signal: AbortSignal): Promise<void> {
    const first = Math.max(0, Math.floor((offset - CHUNK) / CHUNK));
    await this.fill(first, first + 3, signal).catch(() => undefined);
  }

  /** The bytes from `from` to `to`, or to the end; reads what is not here. */
  async window(from: number, to: number, signal: AbortSignal): Promise<Piece> {
    const first = Math.floor(Math.max(from, this.dropped) / CHUNK);
    const last = Math.max(first, Math.ceil(Math.min(to, this.total) / CHUNK) - 1);
    const missing: number[] = [];
    for (let index = first; index <= last; index += 1) if (!this.isWhole(index)) missing.push(index);
    if (missing.length) await this.fill(missing[0]!, missing.at(-1)!, signal);
    return this.joined(first, last);
  }

  /** Takes bytes over that were read elsewhere, where they continue what is here. */
  append(start: number, data: Uint8Array): void {
    let at = 0;
    while (at < data.length) {
      const offset = start + at;
      const index = Math.floor(offset / CHUNK);
      const inside = offset - index * CHUNK;
      const count = Math.min(CHUNK - inside, data.length - at);
      const before = this.chunks.get(index);
      if ((before?.length ?? 0) >= inside && (before || inside === 0)) {
        const grown = new Uint8Array(Math.max(before?.length ?? 0, inside + count));
        if (before) grown.set(before);
        grown.set(data.subarray(at, at + count), inside);
        this.put(index, grown);
      }
      at += count;
    }
  }

  private isWhole(index: number): boolean {
    const found = this.chunks.get(index);
    return found !== undefined && index * CHUNK + found.length >= Math.min((index + 1) * CHUNK, this.total);
  }

  private async fill(first: number, last: number, signal: AbortSignal): Promise<void> {
    const piece = await this.read({ from: first * CHUNK, bytes: (last - first + 1) * CHUNK }, signal);
    for (let index = first; index <= last; index += 1) {
      const from = index * CHUNK - piece.start;
      // A chunk that begins before the kept part of the log is filled with zeros there.
      if (from + CHUNK <= 0 || from >= piece.data.length) continue;
      const part = piece.data.slice(Math.max(0, from), from + CHUNK);
      if (from >= 0) this.put(index, part);
      else {
        const padded = new Uint8Array(part.length - from);
        padded.set(part, -from);
        this.put(index, padded);
      }
    }
  }

  private put(index: number, data: Uint8Array<ArrayBuffer>): void {
    this.chunks.delete(index);
    this.chunks.set(index, data);
    while (this.chunks.size > MOST_CHUNKS) this.chunks.delete(this.chunks.keys().next().value!);
  }

  private joined(first: number, last: number): Piece {
    const parts: Uint8Array[] = [];
    let length = 0;
    for (let index = first; index <= last; index += 1) {
      const part = this.chunks.get(index);
      if (!part) break;
      parts.push(part);
      length += part.length;
      if (part.length < CHUNK) break;
    }
    const data = new Uint8Array(length);
    let at = 0;
    for (const part of parts) {
      data.set(part, at);
      at += part.length;
    }
    const cut = Math.min(length, Math.max(0, this.dropped - first * CHUNK));
    return { start: first * CHUNK + cut, data: data.subarray(cut), total: this.total, dropped: this.dropped };
  }

  private async read(query: { from: number; bytes: number; wait?: number }, signal: AbortSignal): Promise<Piece> {
    const answer = await request(withQuery(logPath(this.id), { ...query, stream: this.stream, view: "raw" }), {
      signal,
      headers: { Accept: "application/octet-stream" },
    });
    const header = (name: string) => Number(answer.headers.get(`holdfast-${name}`) ?? 0);
    const data = new Uint8Array(await answer.arrayBuffer());
    this.dropped = header("dropped");
    this.total = Math.max(this.total, header("total"));
    return { start: header("start"), data, total: this.total, dropped: this.dropped };
  }
}
