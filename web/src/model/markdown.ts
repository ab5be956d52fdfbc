/**
 * Markdown as a tree. HTML is text like any other, and a link has the scheme http or https, or is text as well.
 *
 * Searches look ahead a bounded number of characters, so that no text takes longer than its length allows.
 */
export type Inline =
  | { kind: "text" | "code"; text: string }
  | { kind: "strong" | "em" | "del"; parts: Inline[] }
  | { kind: "link"; href: string; parts: Inline[] }
  | { kind: "break" };

export type Block =
  | { kind: "paragraph"; parts: Inline[] }
  | { kind: "heading"; level: number; parts: Inline[] }
  | { kind: "code"; language: string; text: string }
  | { kind: "list"; start: number | null; items: Block[][] }
  | { kind: "quote"; blocks: Block[] }
  | { kind: "table"; head: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

const AHEAD = 2000;
const DEEPEST = 6;
const MOST_TRIES = 30;
const FENCE = /^ {0,3}(`{3,}|~{3,}) *([\w+#.-]{0,40})/;
const HEADING = /^ {0,3}(#{1,6})(?: +|$)/;
const RULE = /^ {0,3}(?:(?:- *){3,}|(?:\* *){3,}|(?:_ *){3,})$/;
const ITEM = /^( {0,12})([-*+]|\d{1,9}[.)])( +|$)/;

export function parseMarkdown(text: string): Block[] {
  return blocksOf(text.split("\n"), 0);
}

function blocksOf(lines: string[], depth: number): Block[] {
  const found: Block[] = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at]!;
    if (!line.trim()) {
      at += 1;
      continue;
    }
    const [block, next] =
      fence(lines, at) ?? heading(lines, at) ?? (RULE.test(line) ? rule(at) : null) ?? quote(lines, at, depth) ??
      list(lines, at, depth) ?? table(lines, at) ?? paragraph(lines, at);
    found.push(block);
    at = next;
  }
  return found;
}

type Parsed = [Block, number];

const rule = (at: number): Parsed => [{ kind: "rule" }, at + 1];

function fence(lines: string[], at: number): Parsed | null {
  const begin = FENCE.exec(lines[at]!);
  if (!begin) return null;
  const mark = begin[1]!;
  let end = at + 1;
  while (end < lines.length && !isClosing(lines[end]!, mark)) end += 1;
  return [{ kind: "code", language: begin[2] ?? "", text: lines.slice(at + 1, end).join("\n") }, end + 1];
}

function isClosing(line: string, mark: string): boolean {
  const text = line.trim();
  return text.length >= mark.length && text === mark[0]!.repeat(text.length);
}

function heading(lines: string[], at: number): Parsed | null {
  const begin = HEADING.exec(lines[at]!);
  if (!begin) return null;
  const text = lines[at]!.slice(begin[0].length).trim().replace(/ #{1,6}$/, "");
  return [{ kind: "heading", level: begin[1]!.length, parts: inlineOf(text) }, at + 1];
}

function quote(lines: string[], at: number, depth: number): Parsed | null {
  if (depth >= DEEPEST || !/^ {0,3}>/.test(lines[at]!)) return null;
  let end = at;
  while (end < lines.length && /^ {0,3}>/.test(lines[end]!)) end += 1;
  const inner = lines.slice(at, end).map((line) => line.replace(/^ {0,3}> ?/, ""));
  return [{ kind: "quote", blocks: blocksOf(inner, depth + 1) }, end];
}

function list(lines: string[], at: number, depth: number): Parsed | null {
  const first = ITEM.exec(lines[at]!);
  if (!first || depth >= DEEPEST) return null;
  const isOrdered = /\d/.test(first[2]!);
  const items: string[][] = [];
  let end = at;
  let inner = 0;
  for (; end < lines.length; end += 1) {
    const line = lines[end]!;
    const item = ITEM.exec(line);
    if (item !== null && (end === at || item[1]!.length < inner)) {
      if (/\d/.test(item[2]!) !== isOrdered) break;
      inner = item[1]!.length + item[2]!.length + Math.max(1, item[3]!.length);
      items.push([line.slice(inner)]);
    } else if (!line.trim()) {
      const next = lines[end + 1];
      if (next === undefined || !next.trim() || (indentOf(next) < inner && !ITEM.test(next))) break;
      items.at(-1)!.push("");
    } else if (indentOf(line) >= inner) {
      items.at(-1)!.push(line.slice(inner));
    } else if (lines[end - 1]!.trim() && !startsBlock(line)) {
      items.at(-1)!.push(line.trimStart());
    } else {
      break;
    }
  }
  const start = isOrdered ? Number.parseInt(first[2]!, 10) : null;
  return [{ kind: "list", start, items: items.map((item) => blocksOf(item, depth + 1)) }, Math.max(end, at + 1)];
}

const indentOf = (line: string) => line.length - line.trimStart().length;
const startsBlock = (line: string) => FENCE.test(line) || HEADING.test(line) || RULE.test(line) || /^ {0,3}>/.test(line);

function table(lines: string[], at: number): Parsed | null {
  const under = lines[at + 1];
  if (under === undefined || !lines[at]!.includes("|") || !under.includes("-")) return null;
  const head = cellsOf(lines[at]!);
  const marks = cellsOf(under);
  if (marks.length !== head.length || !marks.every((mark) => /^:?-{1,200}:?$/.test(mark))) return null;
  let end = at + 2;
  while (end < lines.length && lines[end]!.includes("|")) end += 1;
  const rows = lines.slice(at + 2, end).map((line) => {
    const cells = cellsOf(line);
    return head.map((_, column) => inlineOf(cells[column] ?? ""));
  });
  return [{ kind: "table", head: head.map((cell) => inlineOf(cell)), rows }, end];
}

const cellsOf = (line: string) => line.trim().replace(/^\|/, "").replace(/\|$/, "").split("|").map((cell) => cell.trim());

function paragraph(lines: string[], at: number): Parsed {
  let end = at + 1;
  while (end < lines.length && lines[end]!.trim() && !startsBlock(lines[end]!) && !ITEM.test(lines[end]!)) end += 1;
  return [{ kind: "paragraph", parts: inlineOf(lines.slice(at, end).join("\n").trim()) }, end];
}

const WRAPS: { mark: string; kind: "strong" | "em" | "del" }[] = [
  { mark: "**", kind: "strong" },
  { mark: "__", kind: "strong" },
  { mark: "~~", kind: "del" },
  { mark: "*", kind: "em" },
  { mark: "_", kind: "em" },
];
const SPECIAL = /[\\`*_~[\n]|https?:\/\//g;
const ESCAPED = /[!-/:-@[-`{-~]/;

export function inlineOf(text: string, depth = 0): Inline[] {
  const found: Inline[] = [];
  const put = (part: string) => {
    const last = found.at(-1);
    if (last?.kind === "text") last.text += part;
    else if (part) found.push({ kind: "text", text: part });
  };
  let at = 0;
  while (at < text.length) {
    SPECIAL.lastIndex = at;
    const special = SPECIAL.exec(text);
    if (special === null) {
      put(text.slice(at));
      break;
    }
    put(text.slice(at, special.index));
    at = special.index;
    const one = inlineAt(text, at, depth);
    if (one === null) {
      put(special[0]);
      at += special[0].length;
    } else {
      if (one[0].kind === "text") put(one[0].text);
      else found.push(one[0]);
      at = one[1];
    }
  }
  return found;
}

/** What begins at this character, and where it ends; null where it stands for itself. */
function inlineAt(text: string, at: number, depth: number): [Inline, number] | null {
  const sign = text[at]!;
  if (sign === "\n") return [text.slice(at - 2, at) === "  " ? { kind: "break" } : { kind: "text", text: "\n" }, at + 1];
  if (sign === "\\") return ESCAPED.test(text[at + 1] ?? "") ? [{ kind: "text", text: text[at + 1]! }, at + 2] : null;
  if (sign === "`") return codeAt(text, at);
  if (sign === "[") return depth < DEEPEST ? linkAt(text, at, depth) : null;
  if (sign === "h") return addressAt(text, at);
  return depth < DEEPEST ? wrapAt(text, at, depth) : null;
}

function codeAt(text: string, at: number): [Inline, number] | null {
  const mark = /^`{1,20}/.exec(text.slice(at, at + 20))![0];
  const ahead = text.slice(at + mark.length, at + mark.length + AHEAD);
  let end = ahead.indexOf(mark);
  while (end >= 0 && (ahead[end + mark.length] === "`" || ahead[end - 1] === "`")) end = ahead.indexOf(mark, end + mark.length + 1);
  if (end <= 0) return null;
  return [{ kind: "code", text: ahead.slice(0, end) }, at + 2 * mark.length + end];
}

function wrapAt(text: string, at: number, depth: number): [Inline, number] | null {
  const wrap = WRAPS.find(({ mark }) => text.startsWith(mark, at));
  if (!wrap) return null;
  const { mark, kind } = wrap;
  const start = at + mark.length;
  const isWord = (sign: string | undefined) => sign !== undefined && /[\p{L}\p{N}]/u.test(sign);
  if (!text[start] || /\s/.test(text[start]!) || (mark[0] === "_" && isWord(text[at - 1]))) return null;
  const ahead = text.slice(start, start + AHEAD);
  let end = ahead.indexOf(mark, 1);
  let tries = 0;
  while (
    end >= 0 &&
    tries++ < MOST_TRIES &&
    (/\s/.test(ahead[end - 1]!) || (mark.length === 1 && ahead[end + 1] === mark) || (mark[0] === "_" && isWord(ahead[end + mark.length])))
  )
    end = ahead.indexOf(mark, end + (ahead[end + 1] === mark ? 2 : 1));
  if (end < 1 || tries > MOST_TRIES) return null;
  return [{ kind, parts: inlineOf(ahead.slice(0, end), depth + 1) }, start + end + mark.length];
}

function linkAt(text: string, at: number, depth: number): [Inline, number] | null {
  const ahead = text.slice(at + 1, at + 1 + AHEAD);
  const middle = ahead.indexOf("](");
  if (middle < 1 || ahead.slice(0, middle).includes("\n\n")) return null;
  const end = ahead.indexOf(")", middle);
  if (end < 0) return null;
  const href = safeAddress(ahead.slice(middle + 2, end).trim().split(/\s/)[0]!);
  const parts = inlineOf(ahead.slice(0, middle), depth + 1);
  if (href === null) return null;
  return [{ kind: "link", href, parts: parts.filter((part) => part.kind !== "link") }, at + end + 2];
}

function addressAt(text: string, at: number): [Inline, number] | null {
  const shown = /^https?:\/\/[^\s<>"'`\])}]{1,1000}/.exec(text.slice(at, at + AHEAD))?.[0].replace(/[.,;:!?*_~]+$/, "");
  const href = shown && safeAddress(shown);
  return href ? [{ kind: "link", href, parts: [{ kind: "text", text: shown }] }, at + shown.length] : null;
}

/** The address, if a browser may open it from here. */
export function safeAddress(text: string): string | null {
  try {
    const url = new URL(text);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch {
    return null;
  }
}
