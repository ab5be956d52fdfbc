/** The conversation: only what is on the screen exists, whatever its length. It follows its end until it is scrolled. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useLayoutEffect, useRef, useState } from "react";
import { processPath } from "../../app/router";
import { sayError } from "../../app/toasts";
import { Ago, Empty, Link, State } from "../../components/basics";
import { Icon, StateIcon } from "../../components/Icon";
import { CodeBlock, Markdown } from "../../components/Markdown";
import type { ChatFeed, Conversation, Draft, Outgoing } from "../../feed/chat";
import { processes } from "../../feed/processes";
import { usePart } from "../../feed/store";
import { duration } from "../../model/format";
import type { StateName } from "../../model/state";
import { clean, type Item, type ToolItem } from "./items";

/** Nearer to the end than this, the list follows it. */
const NEAR = 60;

type Row = Item | { kind: "draft"; key: string; draft: Draft } | { kind: "outgoing"; key: string; message: Outgoing };

interface TranscriptProps {
  chat: ChatFeed;
  talk: Conversation;
  items: Item[];
}

export function Transcript({ chat, talk, items }: TranscriptProps) {
  const frame = useRef<HTMLDivElement>(null);
  const [isFollowing, setFollowing] = useState(true);
  const [isReading, setReading] = useState(false);
  /** Items that the user opened or closed, against what they are at first. */
  const [folds, setFolds] = useState<ReadonlyMap<string, boolean>>(new Map());
  const rows: Row[] = [
    ...items,
    ...talk.drafts.map((draft) => ({ kind: "draft" as const, key: `draft ${draft.entry}`, draft })),
    ...talk.outgoing.map((message) => ({ kind: "outgoing" as const, key: message.id, message })),
  ];
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: (index) => (rows[index]?.kind === "agent" || rows[index]?.kind === "user" ? 90 : 36),
    getItemKey: (index) => rows[index]!.key,
    overscan: 6,
  });
  const total = virtual.getTotalSize();
  const last = rows.at(-1);
  useLayoutEffect(() => {
    if (isFollowing && frame.current) frame.current.scrollTop = frame.current.scrollHeight;
  }, [isFollowing, total, rows.length, last?.kind === "draft" ? last.draft : null]);
  // A message of the user is followed by its answer.
  const sent = talk.outgoing.at(-1)?.id;
  useEffect(() => {
    if (sent !== undefined) setFollowing(true);
  }, [sent]);

  const older = async () => {
    setReading(true);
    setFollowing(false);
    const first = rows[0]?.key;
    try {
      await chat.readOlder();
      requestAnimationFrame(() => {
        const at = virtual.options.count - rows.length;
        if (first !== undefined && at > 0) virtual.scrollToIndex(at, { align: "start" });
      });
    } catch (failed) {
      sayError(failed);
    } finally {
      setReading(false);
    }
  };

  if (!rows.length)
    return (
      <div className="chat-transcript">
        <Empty title="Nothing was said yet">The agent of this session starts with your first message.</Empty>
      </div>
    );
  return (
    <div className="chat-frame">
      <div
        ref={frame}
        className="chat-transcript"
        role="log"
        aria-live="off"
        aria-label="Conversation"
        tabIndex={0}
        onScroll={(event) => {
          const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
          setFollowing(scrollHeight - scrollTop - clientHeight < NEAR);
        }}
      >
        {talk.hasOlder && (
          <p className="chat-older">
            <button disabled={isReading} onClick={() => void older()}>
              {isReading ? "Reading …" : "Earlier messages"}
            </button>
          </p>
        )}
        <div className="chat-rows" style={{ height: total }}>
          {virtual.getVirtualItems().map((one) => {
            const row = rows[one.index]!;
            return (
              <div
                key={one.key}
                ref={virtual.measureElement}
                data-index={one.index}
                className="chat-row"
                style={{ transform: `translateY(${one.start}px)` }}
              >
                <ShownRow
                  row={row}
                  seconds={row.kind === "tool" ? talk.progress.get(row.call) : undefined}
                  isOpen={folds.get(row.key) ?? false}
                  onFold={(isOpen) => setFolds((now) => new Map(now).set(row.key, isOpen))}
                />
              </div>
            );
          })}
        </div>
      </div>
      {!isFollowing && (
        <button className="chat-follow" onClick={() => setFollowing(true)}>
          <Icon name="down" /> To the end
        </button>
      )}
    </div>
  );
}

interface RowProps {
  row: Row;
  seconds: number | undefined;
  isOpen: boolean;
  onFold(isOpen: boolean): void;
}

function ShownRow({ row, seconds, isOpen, onFold }: RowProps) {
  switch (row.kind) {
    case "user":
      return (
        <article className="chat-user">
          <Who name="You" time={row.time} />
          <div className="chat-text">{row.text}</div>
        </article>
      );
    case "outgoing":
      return (
        <article className="chat-user is-sending">
          <Who name="You" note={row.message.error ? "not sent" : "sending …"} />
          <div className="chat-text">{row.message.text}</div>
        </article>
      );
    case "agent":
      return (
        <article className="chat-agent">
          <Who name="Agent" time={row.time} note={row.isPartial ? "interrupted" : ""} />
          {row.reasoning && <Reasoning text={row.reasoning} isOpen={isOpen} onFold={onFold} />}
          {row.text && <Markdown text={row.text} />}
        </article>
      );
    case "draft":
      return <ShownDraft draft={row.draft} isOpen={isOpen} onFold={onFold} />;
    case "tool":
      return <Tool tool={row} seconds={seconds} isOpen={isOpen} onFold={onFold} />;
    case "notice":
      return (
        <article className="chat-notice">
          <details open={isOpen} onToggle={(event) => onFold(event.currentTarget.open)}>
            <summary>
              <span className="chat-mark">System</span>
              <h3 className="chat-notice-head">{row.head}</h3>
              <span className="muted"><Ago time={row.time} /></span>
            </summary>
            <CodeBlock text={row.text} what="the notification" />
          </details>
          {row.process && <ProcessLink id={row.process} />}
        </article>
      );
    case "error":
      return (
        <article className="chat-error">
          <h3>Error</h3>
          <p>{row.text}</p>
          {row.next && <p>Next: {row.next}</p>}
        </article>
      );
    case "system":
      return <p className="chat-system muted">{row.text}</p>;
  }
}

function Who({ name, time, note = "" }: { name: string; time?: number; note?: string }) {
  return (
    <div className="chat-who">
      <h3>{name}</h3>
      <span className="muted">
        {note}
        {time !== undefined && <> <Ago time={time} /></>}
      </span>
    </div>
  );
}

interface FoldProps {
  isOpen: boolean;
  onFold(isOpen: boolean): void;
}

function Reasoning({ text, isOpen, onFold }: FoldProps & { text: string }) {
  return (
    <details className="chat-reasoning" open={isOpen} onToggle={(event) => onFold(event.currentTarget.open)}>
      <summary className="muted">Reasoning</summary>
      <div className="chat-text muted">{text}</div>
    </details>
  );
}

function ShownDraft({ draft, isOpen, onFold }: FoldProps & { draft: Draft }) {
  const text = clean(draft.text);
  return (
    <article className="chat-agent is-draft">
      <Who name="Agent" note={draft.isCut ? "writing; the beginning comes when it is complete" : "writing"} />
      {draft.reasoning && <Reasoning text={clean(draft.reasoning)} isOpen={isOpen} onFold={onFold} />}
      {text && <Markdown text={draft.isCut ? `… ${text}` : text} />}
      {draft.tool !== null && <p className="muted">calls {draft.tool} …</p>}
      {draft.retry !== null && <p className="chat-retry">{clean(draft.retry)}</p>}
      {!text && !draft.reasoning && draft.tool === null && draft.retry === null && (
        <p className="muted">
          <span className="spinner" aria-hidden="true" /> asks the model
        </p>
      )}
    </article>
  );
}

const TOOL_STATES: Record<ToolItem["state"], { icon: StateName; word: string }> = {
  waiting: { icon: "waiting", word: "not run yet" },
  running: { icon: "starting", word: "runs" },
  done: { icon: "succeeded", word: "done" },
  failed: { icon: "failed", word: "failed" },
  interrupted: { icon: "killed", word: "interrupted" },
};

const Tool = memo(function Tool({ tool, seconds, isOpen, onFold }: FoldProps & { tool: ToolItem; seconds: number | undefined }) {
  const state = TOOL_STATES[tool.state];
  return (
    <article className="chat-tool">
      <details open={isOpen} onToggle={(event) => onFold(event.currentTarget.open)}>
        <summary>
          <span className={`state state-${state.icon}`}>
            <StateIcon name={state.icon} />
            <span className="hidden-text">{state.word}</span>
          </span>
          <h3>{tool.name}</h3>
          <code>{tool.head}</code>
          {tool.state === "running" && seconds !== undefined && <span className="muted">{duration(seconds)}</span>}
        </summary>
        <CodeBlock text={pretty(tool.arguments)} what="the call" language="call" />
        {tool.result !== null && <CodeBlock text={tool.result} what="the result" language="result" />}
      </details>
      {tool.process && <ProcessLink id={tool.process} />}
    </article>
  );
});

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** To a process, with its state now. */
function ProcessLink({ id }: { id: string }) {
  const process = usePart(processes, (now) => now.all.get(id));
  // Not started yet, or removed since.
  if (!process) return <code className="chat-process muted">{id}</code>;
  return (
    <Link to={processPath(id)} className="chat-process" title={`Open ${id}`}>
      {process.name && <span>{process.name}</span>}
      <State process={process} />
      <span className="hidden-text"> {id}</span>
    </Link>
  );
}
