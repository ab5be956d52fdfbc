/** A conversation as a list to draw: what was said, calls of tools with their results, notices. */
import type { AgentLogEntry } from "../../api/types";

export interface ToolItem {
  kind: "tool";
  key: string;
  time: number;
  call: string;
  name: string;
  /** The call in one line. */
  head: string;
  arguments: string;
  state: "waiting" | "running" | "done" | "failed" | "interrupted";
  process: string | null;
  result: string | null;
}

export type Item =
  | { kind: "user"; key: string; time: number; text: string }
  | { kind: "agent"; key: string; time: number; text: string; reasoning: string; isPartial: boolean }
  | { kind: "notice"; key: string; time: number; head: string; text: string; process: string | null }
  | { kind: "error"; key: string; time: number; text: string; next: string }
  | { kind: "system"; key: string; time: number; text: string }
  | ToolItem;

const MAIN_ARGUMENTS = ["command", "path", "pattern", "action", "session_id"];
const LONGEST_WHO = 40;
const LONGEST_HEAD = 300;
const LONGEST_RESULT = 20_000;
const ENDS: Record<string, string> = {
  max_steps: "The turn ended: it took the most steps that are allowed. Send a message to go on.",
  invalid_calls: "The turn ended: the model called no tool in a valid way. Send a message to go on.",
  stopped: "The agent was stopped. The next message starts it again.",
};

const text = (value: unknown): string => (typeof value === "string" ? value : value == null ? "" : String(value));

/** Without control characters, and characters that reverse the direction of others. */
export const clean = (shown: string): string =>
  // eslint-disable-next-line no-control-regex
  shown.replace(/\u001b\[[0-9;?]{0,40}[A-Za-z]|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "");

export function itemsOf(entries: readonly AgentLogEntry[]): Item[] {
  const found: Item[] = [];
  const tools = new Map<string, ToolItem>();
  let model = "";
  for (const { id, time, kind, content } of entries) {
    const key = String(id);
    const system = (shown: string) => found.push({ kind: "system", key, time, text: shown });
    if (typeof content.omitted === "number") {
      system(`An entry of ${content.omitted} bytes is not shown here. Next: holdfast agent log`);
      continue;
    }
    switch (kind) {
      case "user":
        found.push({ kind: "user", key, time, text: clean(text(content.text)) });
        break;
      case "assistant":
        if (content.text || content.reasoning)
          found.push({
            kind: "agent",
            key,
            time,
            text: clean(text(content.text)),
            reasoning: clean(text(content.reasoning)),
            isPartial: content.is_partial === true,
          });
        for (const tool of callsOf(content.calls, key, time)) {
          tools.set(tool.call, tool);
          found.push(tool);
        }
        break;
      case "tool_start":
      case "tool_result": {
        const tool = tools.get(text(content.call));
        if (!tool) break;
        if (kind === "tool_start") {
          tool.state = "running";
          tool.process = text(content.process) || null;
        } else {
          tool.state = content.is_error ? "failed" : content.status === "interrupted" ? "interrupted" : "done";
          tool.result = shownResult(text(content.text));
          tools.delete(tool.call);
        }
        break;
      }
      case "notice": {
        const shown = clean(text(content.text));
        found.push({ kind: "notice", key, time, head: noticeHead(shown), text: shown, process: text(content.process) || null });
        break;
      }
      case "error":
        found.push({ kind: "error", key, time, text: clean(text(content.message)), next: clean(text(content.next)) });
        break;
      case "interrupt":
        system("Interrupted");
        break;
      case "compaction":
        system("The conversation up to here was summarised for the model");
        break;
      case "settings":
        if (model && content.model !== model) system(`Model: ${clean(text(content.model))}`);
        model = text(content.model);
        break;
      case "end":
        if (ENDS[text(content.reason)]) system(ENDS[text(content.reason)]!);
        break;
    }
  }
  return found;
}

/** The model of the last settings; empty where none is known. */
export function modelOf(entries: readonly AgentLogEntry[]): string {
  const settings = entries.findLast((entry) => entry.kind === "settings");
  return clean(text(settings?.content.model));
}

function callsOf(calls: unknown, key: string, time: number): ToolItem[] {
  if (!Array.isArray(calls)) return [];
  return calls
    .filter((one): one is Record<string, unknown> => typeof one === "object" && one !== null)
    .map((one, index) => {
      const given = clean(text(one.arguments));
      const name = clean(text(one.name));
      return {
        kind: "tool",
        key: `${key}.${index}`,
        time,
        call: text(one.id),
        name,
        head: headOf(given),
        arguments: given,
        state: "waiting",
        process: null,
        result: null,
      };
    });
}

/** `pytest -q (background)` */
function headOf(given: string): string {
  let fields: unknown;
  try {
    fields = JSON.parse(given);
  } catch {
    fields = null;
  }
  if (typeof fields !== "object" || fields === null) return given.slice(0, LONGEST_HEAD);
  const named = fields as Record<string, unknown>;
  const main = MAIN_ARGUMENTS.filter((name) => named[name]).map((name) => text(named[name]).slice(0, LONGEST_HEAD));
  const all = Object.entries(named).map(([name, value]) => `${name}=${typeof value === "object" ? "…" : String(value)}`.slice(0, 80));
  return `${clean(main.slice(0, 2).join(" ") || all.join(", "))}${named.background ? " (background)" : ""}`;
}

/** A notice in one line: of a single process, its name or command and what happened to it. */
function noticeHead(shown: string): string {
  const [first, ...rest] = shown.split("\n", 3);
  const head = first!.replace(/^\[IMPORTANT: /, "").replace(/\]$/, "");
  const given = (field: string) => rest.find((line) => line.startsWith(`${field}: `))?.slice(field.length + 2);
  const who = given("Name") ?? given("Command");
  const what = /^Background process proc_[0-9a-f]+ (.+)$/.exec(head)?.[1];
  return who && what ? `${who.length <= LONGEST_WHO ? who : `${who.slice(0, LONGEST_WHO - 1)}…`} ${what}` : head;
}

/** What a call printed, where it printed something; else all of its answer. */
function shownResult(result: string): string {
  let shown = result;
  try {
    const fields = JSON.parse(result) as unknown;
    if (typeof fields === "object" && fields !== null) {
      const { output, ...rest } = fields as Record<string, unknown>;
      const facts = JSON.stringify(typeof output === "string" && output ? rest : fields, null, 2);
      shown = typeof output === "string" && output ? `${output.trimEnd()}\n\n${facts}` : facts;
    }
  } catch {
    // It is a text.
  }
  shown = clean(shown);
  return shown.length > LONGEST_RESULT ? `${shown.slice(0, LONGEST_RESULT)}\n… ${shown.length - LONGEST_RESULT} more characters` : shown;
}
