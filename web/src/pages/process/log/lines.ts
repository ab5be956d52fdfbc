/** Lines of a window of bytes. A line of more than 4 KiB is shown in pieces. */
import type { Piece } from "./bytes";

const LONGEST = 4096;
const NEWLINE = 10;

export interface LogLine {
  start: number;
  end: number;
}

export interface LogWindow extends Piece {
  lines: LogLine[];
  end: number;
  isAtStart: boolean;
  isAtEnd: boolean;
}

export function windowOf(piece: Piece): LogWindow {
  const { data, start, total, dropped } = piece;
  const end = start + data.length;
  const isAtStart = start <= dropped;
  const lines: LogLine[] = [];
  let at = 0;
  if (!isAtStart) {
    // The first line began before the window; a window without a line end begins as it is.
    const first = data.indexOf(NEWLINE);
    at = first < 0 || first > 65536 ? 0 : first + 1;
  }
  while (at < data.length) {
    const newline = data.indexOf(NEWLINE, at);
    const lineEnd = newline < 0 ? data.length : newline + 1;
    while (lineEnd - at > LONGEST) {
      const cut = characterStart(data, at + LONGEST);
      lines.push({ start: start + at, end: start + cut });
      at = cut;
    }
    lines.push({ start: start + at, end: start + lineEnd });
    at = lineEnd;
  }
  return { ...piece, lines, end, isAtStart, isAtEnd: end >= total };
}

/** No piece begins within a character. */
function characterStart(data: Uint8Array, at: number): number {
  let cut = at;
  while (cut > at - 4 && (data[cut]! & 0xc0) === 0x80) cut -= 1;
  return cut;
}

const decoder = new TextDecoder();

export function textOf(window: LogWindow, line: LogLine): string {
  const from = line.start - window.start;
  let to = line.end - window.start;
  if (window.data[to - 1] === NEWLINE) to -= 1;
  if (to > from && window.data[to - 1] === 13) to -= 1;
  return decoder.decode(window.data.subarray(from, to));
}

/** The index of the line that has this byte. */
export function lineAt(window: LogWindow, offset: number): number {
  const { lines } = window;
  let low = 0;
  let high = lines.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (lines[middle]!.start <= offset) low = middle;
    else high = middle - 1;
  }
  return Math.max(0, low);
}
