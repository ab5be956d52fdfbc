import { useEffect, useMemo, useRef, useState } from "react";
import type { Process } from "../../../api/types";
import { useKeys } from "../../../app/keys";
import { processPath, setQuery, usePlace } from "../../../app/router";
import { useReadOnly } from "../../../app/session_context";
import { copy, sayError } from "../../../app/toasts";
import { Failure, Link } from "../../../components/basics";
import { Icon } from "../../../components/Icon";
import { SendForm } from "../../../components/SendForm";
import { count, size } from "../../../model/format";
import { titleOf } from "../../../model/state";
import { download } from "./download";
import { FindBar } from "./FindBar";
import { LogView, type LogViewHandle } from "./LogView";
import { ScrollBar } from "./ScrollBar";
import { markerOf, useFind } from "./useFind";
import { useLog } from "./useLog";
import { useTimes } from "./useTimes";

const KEY = "holdfast-log";
/** Lines above a hit or a linked line. */
const ABOVE = 5;

function readChoice(name: string, usual: boolean): boolean {
  return (localStorage.getItem(`${KEY}-${name}`) ?? String(usual)) === "true";
}

function useChoice(name: string, usual: boolean): [boolean, () => void] {
  const [value, setValue] = useState(() => readChoice(name, usual));
  const toggle = () => {
    localStorage.setItem(`${KEY}-${name}`, String(!value));
    setValue(!value);
  };
  return [value, toggle];
}

export function LogTab({ process }: { process: Process }) {
  const { query } = usePlace();
  const at = query.get("at") === null ? null : Number(query.get("at")) || 0;
  const stream = query.get("stream") === "err" ? "err" : "out";
  return <LogPane key={`${process.id} ${stream}`} process={process} stream={stream} at={at} />;
}

function LogPane({ process, stream, at }: { process: Process; stream: string; at: number | null }) {
  const log = useLog(process.id, stream, process.status !== "ended" || process.leftover_pids.length > 0, at);
  const { found, find, clear } = useFind(process.id, stream);
  const [isFinding, setFinding] = useState(false);
  const [current, setCurrent] = useState(-1);
  const [isWrapped, toggleWrap] = useChoice("wrap", true);
  const [showsTime, toggleTime] = useChoice("time", innerWidth > 760);
  const [isRaw, setRaw] = useState(false);
  const [range, setRange] = useState({ from: 0, to: 0 });
  const view = useRef<LogViewHandle>(null);
  const field = useRef<HTMLInputElement>(null);
  const readOnly = useReadOnly();
  const timeOf = useTimes(process.id, stream, log.window?.start ?? 0, log.window?.end ?? 0, showsTime);
  const marker = useMemo(() => markerOf(found?.query), [found?.query]);
  const markedAt = current >= 0 ? (found?.hits[current] ?? null) : at;

  // A link to a line that is followed within the page.
  useEffect(() => {
    if (at === null || log.window === null) return;
    setCurrent(-1);
    log.goTo(at, ABOVE);
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [at]);

  /** Asked for before the search had a hit: 1 or -1. */
  const wanted = useRef(0);
  useEffect(() => {
    if (wanted.current && found?.hits.length) step(wanted.current);
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [found]);
  const step = (by: number) => {
    wanted.current = found?.hits.length ? 0 : by;
    if (!found?.hits.length) return;
    const { hits } = found;
    let next = current + by;
    if (current < 0) {
      const here = hits.findIndex((hit) => hit >= range.from);
      next = by > 0 ? (here < 0 ? 0 : here) : (here <= 0 ? hits.length : here) - 1;
    }
    next = (next + hits.length) % hits.length;
    setCurrent(next);
    log.goTo(hits[next]!, ABOVE);
  };
  const openFind = () => {
    setFinding(true);
    field.current?.focus();
  };
  const closeFind = () => {
    setFinding(false);
    wanted.current = 0;
    setCurrent(-1);
    clear();
  };
  const link = (start: number) => {
    setQuery({ at: String(start) });
    void copy(location.href, "the link to this line");
  };

  useKeys("Log", [
    { key: "/", does: "find", run: openFind },
    { key: "n", does: "next hit", run: () => step(1) },
    { key: "N", does: "previous hit", run: () => step(-1) },
    { key: "f", does: "follow", run: () => log.follow(!log.isFollowing) },
    { key: "g", does: "first line", run: () => log.goTo(log.dropped) },
    { key: "G", does: "end", run: () => log.follow(true) },
    { key: "home", does: "first line", run: () => log.goTo(log.dropped), isHidden: true },
    { key: "end", does: "end", run: () => log.follow(true), isHidden: true },
    { key: "j", does: "down", run: () => view.current?.scrollBy(57) },
    { key: "k", does: "up", run: () => view.current?.scrollBy(-57) },
    { key: "arrowdown", does: "down", run: () => view.current?.scrollBy(57), isHidden: true },
    { key: "arrowup", does: "up", run: () => view.current?.scrollBy(-57), isHidden: true },
    { key: "pagedown", does: "a page down", run: () => view.current?.page(1) },
    { key: "pageup", does: "a page up", run: () => view.current?.page(-1) },
    { key: "space", does: "a page down", run: () => view.current?.page(1), isHidden: true },
    { key: "w", does: "wrap", run: toggleWrap },
  ]);

  return (
    <div className="log">
      <div className="log-tools" role="toolbar" aria-label="Log">
        {isFinding ? (
          <FindBar
            found={found}
            current={current}
            field={field}
            onFind={(next) => {
              setCurrent(-1);
              void find(next, log.dropped, log.total);
            }}
            onStep={step}
            onClose={closeFind}
          />
        ) : (
          <button onClick={openFind}>
            <Icon name="search" /> Find
          </button>
        )}
        <span className="log-tools-end">
          {process.split && (
            <select
              aria-label="Stream"
              value={stream}
              onChange={(event) => setQuery({ stream: event.target.value === "err" ? "err" : null, at: null })}
            >
              <option value="out">stdout</option>
              <option value="err">stderr</option>
            </select>
          )}
          <button aria-pressed={isWrapped} onClick={toggleWrap}>Wrap</button>
          <button aria-pressed={showsTime} onClick={toggleTime}>Time</button>
          <button aria-pressed={isRaw} title="Control characters as they were written" onClick={() => setRaw(!isRaw)}>Raw</button>
          {process.pty && (
            <Link className="button" title="What the terminal shows" to={`${processPath(process.id, "terminal")}?text=1`}>
              Screen
            </Link>
          )}
          <button
            aria-label="Download"
            title="Download all of it"
            onClick={() => void download(process.id, stream, `${titleOf(process)}.log`).catch(sayError)}
          >
            <Icon name="download" />
          </button>
        </span>
      </div>
      <div className="log-frame">
        <LogView
          log={log}
          isWrapped={isWrapped}
          isRaw={isRaw}
          showsTime={showsTime}
          timeOf={timeOf}
          marker={marker}
          markedAt={markedAt}
          onLink={link}
          handle={view}
          onRange={(from, to) => {
            if (from !== range.from || to !== range.to) setRange({ from, to });
          }}
        />
        <ScrollBar
          from={range.from}
          to={log.isFollowing ? log.total : range.to}
          total={log.total}
          dropped={log.dropped}
          hits={found?.hits ?? []}
          onGo={log.goTo}
          onEnd={() => log.follow(true)}
        />
        {log.total === 0 && !log.isLoading && (
          <p className="log-empty">{process.status === "ended" ? "It wrote nothing." : "Nothing yet. Output shows here as it is written."}</p>
        )}
        {!log.isFollowing && log.unseen > 0 && (
          <button className="fresh log-fresh" onClick={() => log.follow(true)}>
            ▼ {size(log.unseen)} new
          </button>
        )}
      </div>
      <div className="log-status">
        <button
          className={log.isFollowing ? "quiet is-on" : "quiet"}
          aria-pressed={log.isFollowing}
          onClick={() => log.follow(!log.isFollowing)}
        >
          {process.status === "ended" ? (log.isFollowing ? "▼ end" : "▽ to the end") : log.isFollowing ? "▼ following" : "▽ follow"}
        </button>
        <span>{size(log.total)}</span>
        <span>byte {count(range.from)}</span>
        {log.dropped > 0 && <span title="Older output is not kept">the first {size(log.dropped)} are not kept</span>}
        {log.skipped > 0 && <span title="Faster than a screen can show; scroll up to read it">{size(log.skipped)} passed unseen</span>}
        {log.error && <Failure text={log.error} />}
        {process.stdin_open && !process.pty && !readOnly && <SendForm process={process} isSecret={false} />}
      </div>
    </div>
  );
}
