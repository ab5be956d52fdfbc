/** Lines of output as spans: colours are kept, every other escape sequence is left out. */
import type { CSSProperties } from "react";

export interface Span {
  text: string;
  style?: CSSProperties;
}

// Sequences: CSI, OSC and other strings, two-character ones; then control characters other than tab.
// eslint-disable-next-line no-control-regex
const SEQUENCE = /\x1b\[([0-9;:<=>?]*)[ -/]*([@-~])|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f\u0080-\u009f]/g;
const BIDI = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

interface Look {
  color?: string;
  background?: string;
  isBold?: boolean;
  isDim?: boolean;
  isItalic?: boolean;
  isUnderlined?: boolean;
  isInverse?: boolean;
}

/** Of a line that was overwritten by carriage returns, its last version. */
export function lastVersion(text: string): string {
  if (!text.includes("\r")) return text;
  return text.split("\r").filter((part) => part !== "").at(-1) ?? "";
}

export function spansOf(line: string): Span[] {
  const text = lastVersion(line);
  if (!text.includes("\x1b")) return [{ text: text.replace(SEQUENCE, "").replace(BIDI, "") }];
  const spans: Span[] = [];
  let look: Look = {};
  let at = 0;
  const add = (piece: string) => {
    const clean = piece.replace(BIDI, "");
    if (clean) spans.push({ text: clean, style: styleOf(look) });
  };
  for (const found of text.matchAll(SEQUENCE)) {
    add(text.slice(at, found.index));
    at = found.index + found[0].length;
    if (found[2] === "m") look = applied(look, found[1] ?? "");
  }
  add(text.slice(at));
  return spans;
}

export const plain = (line: string) => spansOf(line).map((span) => span.text).join("");

/** Every byte visible: escape and control characters as their pictures. */
export function rawText(line: string): string {
  return line.replace(/[\x00-\x08\x0a-\x1f\x7f]/g, (character) => {
    const code = character.charCodeAt(0);
    return code === 0x7f ? "␡" : String.fromCharCode(0x2400 + code);
  });
}

function applied(before: Look, parameters: string): Look {
  const codes = parameters.split(/[;:]/).map((word) => Number(word || 0));
  let look: Look = { ...before };
  for (let index = 0; index < codes.length; index += 1) {
    const code = codes[index]!;
    if (code === 0) look = {};
    else if (code === 1) look.isBold = true;
    else if (code === 2) look.isDim = true;
    else if (code === 3) look.isItalic = true;
    else if (code === 4) look.isUnderlined = true;
    else if (code === 7) look.isInverse = true;
    else if (code === 22) look.isBold = look.isDim = false;
    else if (code === 23) look.isItalic = false;
    else if (code === 24) look.isUnderlined = false;
    else if (code === 27) look.isInverse = false;
    else if (code >= 30 && code <= 37) look.color = `var(--ansi-${code - 30})`;
    else if (code >= 90 && code <= 97) look.color = `var(--ansi-${code - 90})`;
    else if (code === 39) look.color = undefined;
    else if (code >= 40 && code <= 47) look.background = `var(--ansi-${code - 40})`;
    else if (code >= 100 && code <= 107) look.background = `var(--ansi-${code - 100})`;
    else if (code === 49) look.background = undefined;
    else if (code === 38 || code === 48) {
      const [color, used] = extended(codes.slice(index + 1));
      if (code === 38) look.color = color;
      else look.background = color;
      index += used;
    }
  }
  return look;
}

function extended(codes: number[]): [string | undefined, number] {
  if (codes[0] === 5) return [indexed(codes[1] ?? 0), 2];
  if (codes[0] === 2) return [`rgb(${codes[1] ?? 0} ${codes[2] ?? 0} ${codes[3] ?? 0})`, 4];
  return [undefined, 0];
}

function indexed(index: number): string {
  if (index < 16) return `var(--ansi-${index % 8})`;
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return `rgb(${grey} ${grey} ${grey})`;
  }
  const part = (value: number) => (value === 0 ? 0 : 55 + value * 40);
  const cube = index - 16;
  return `rgb(${part(Math.floor(cube / 36))} ${part(Math.floor(cube / 6) % 6)} ${part(cube % 6)})`;
}

function styleOf(look: Look): CSSProperties | undefined {
  const style: CSSProperties = {};
  const background = look.isInverse ? (look.color ?? "var(--color-foreground)") : look.background;
  const color = look.isInverse || look.background ? "var(--color-card)" : look.color;
  if (color) style.color = color;
  if (background) style.backgroundColor = background;
  if (look.isBold) style.fontWeight = 600;
  if (look.isDim) style.color ??= "var(--color-muted-foreground)";
  if (look.isItalic) style.fontStyle = "italic";
  if (look.isUnderlined) style.textDecoration = "underline";
  return Object.keys(style).length ? style : undefined;
}
