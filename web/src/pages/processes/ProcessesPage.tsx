import { memo, useCallback, useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { useReadOnly } from "../../app/session_context";
import { useKeys } from "../../app/keys";
import { navigate, processPath, setQuery, usePlace } from "../../app/router";
import { copy } from "../../app/toasts";
import { Copyable, Empty, Failure, Loading } from "../../components/basics";
import { Icon } from "../../components/Icon";
import { loaded, loadError, processes } from "../../feed/processes";
import { summary } from "../../feed/summary";
import { usePart, useStore } from "../../feed/store";
import { measureAll } from "../../feed/use";
import { count } from "../../model/format";
import { killThem, removeThem, restartThem, transferThem } from "./actions";
import { StartForm } from "./StartForm";
import { Table } from "./Table";
import { useRows } from "./useRows";
import { SHOWS, type GroupKey, type Show, type SortKey, type View } from "./view";

/** The list counts as being at its top within this many pixels. */
const TOP = 40;
const isAtTop = () => scrollY < TOP;

export function ProcessesPage(_: { rest: string[] }) {
  const { query } = usePlace();
  const readOnly = useReadOnly();
  const [text, setText] = useState(query.get("filter") ?? "");
  const shownText = useDeferredValue(text);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [cursor, setCursor] = useState<string | null>(null);
  const field = useRef<HTMLInputElement>(null);
  const view: View = useMemo(
    () => ({
      show: (query.get("show") ?? "all") as Show,
      sort: (query.get("sort") ?? "activity") as SortKey,
      isReversed: query.get("order") === "reversed",
      group: (query.get("group") ?? "none") as GroupKey,
      text: shownText,
    }),
    [query, shownText],
  );
  const rows = useRows(view, isAtTop);
  const isLoaded = useStore(loaded);
  const error = useStore(loadError);
  const { all } = processes.get();
  const hasAny = usePart(processes, (now) => now.all.size > 0);

  const { settle } = rows;
  useEffect(() => {
    if (view.sort === "cpu") void measureAll().then(settle, () => undefined);
  }, [view.sort, settle]);
  useEffect(() => {
    const timer = setTimeout(() => setQuery({ filter: shownText || null }), 300);
    return () => clearTimeout(timer);
  }, [shownText]);

  const chosen = () =>
    (selected.size ? [...selected] : cursor ? [cursor] : []).flatMap((id) => all.get(id) ?? []);
  const move = (step: number) => {
    const index = cursor === null ? -1 : rows.ids.indexOf(cursor);
    const next = Math.max(0, Math.min(rows.ids.length - 1, index < 0 ? 0 : index + step));
    setCursor(rows.ids[next] ?? null);
  };
  // The table is drawn again only for another list: what it calls stays the same, and reads what is shown now.
  const shown = useRef({ ids: rows.ids, cursor, selected, view });
  shown.current = { ids: rows.ids, cursor, selected, view };
  const select = useCallback((id: string, isRange: boolean) => {
    const { ids, cursor, selected } = shown.current;
    const next = new Set(selected);
    if (isRange && cursor !== null) {
      const [from, to] = [ids.indexOf(cursor), ids.indexOf(id)].sort((one, other) => one - other);
      for (const between of ids.slice(Math.max(0, from!), to! + 1)) next.add(between);
    } else if (!next.delete(id)) next.add(id);
    setSelected(next);
    setCursor(id);
  }, []);
  const selectAll = useCallback(() => {
    const { ids, selected } = shown.current;
    setSelected(selected.size ? new Set() : new Set(ids));
  }, []);
  const open = (tab: string) => () => cursor && navigate(processPath(cursor, tab));
  const ifAllowed = (run: () => void) => () => void (readOnly || run());

  useKeys("Processes", [
    { key: "/", does: "filter", run: () => field.current?.focus() },
    { key: "j", does: "next", run: () => move(1) },
    { key: "k", does: "previous", run: () => move(-1) },
    { key: "arrowdown", does: "next", run: () => move(1), isHidden: true },
    { key: "arrowup", does: "previous", run: () => move(-1), isHidden: true },
    { key: "g", does: "first", run: () => setCursor(rows.ids[0] ?? null) },
    { key: "G", does: "last", run: () => setCursor(rows.ids.at(-1) ?? null) },
    { key: "enter", does: "open", run: open("") },
    { key: "l", does: "its log", run: open("log") },
    { key: "t", does: "its terminal", run: open("terminal") },
    { key: "space", does: "select", run: () => cursor && select(cursor, false) },
    { key: "x", does: "kill", run: ifAllowed(() => void killThem(chosen())) },
    { key: "r", does: "restart", run: ifAllowed(() => chosen().length && void restartThem(chosen())) },
    { key: "y", does: "copy the id", run: () => cursor && void copy(cursor, "the id") },
    { key: "n", does: "start a process", run: ifAllowed(() => setQuery({ start: "1" })) },
    {
      key: "escape",
      does: "clear selection and filter",
      inFields: true,
      run: () => {
        field.current?.blur();
        setText("");
        setSelected(new Set());
        setCursor(null);
      },
    },
  ]);

  const sort = useCallback((key: SortKey) => {
    const { view } = shown.current;
    const isSame = view.sort === key;
    if (isSame && view.isReversed) setQuery({ sort: null, order: null });
    else setQuery({ sort: key, order: isSame ? "reversed" : null });
  }, []);

  return (
    <>
      <div className="toolbar">
        <h1 className="hidden-text">Processes</h1>
        <Tabs current={view.show} />
        <label className="filter">
          <Icon name="search" />
          <input
            ref={field}
            type="search"
            value={text}
            placeholder="Filter by command, name, session, state"
            aria-label="Filter"
            spellCheck={false}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" || event.key === "ArrowDown") {
                event.preventDefault();
                field.current?.blur();
                move(0);
              }
            }}
          />
          <kbd aria-hidden="true">/</kbd>
        </label>
        <label className="select-label">
          <span>Group</span>
          <select value={view.group} onChange={(event) => setQuery({ group: event.target.value === "none" ? null : event.target.value })}>
            <option value="none">none</option>
            <option value="session">session</option>
            <option value="task">task</option>
            <option value="project">project</option>
          </select>
        </label>
        {!readOnly && (
          <button className="primary start-button" onClick={() => setQuery({ start: "1" })}>
            <Icon name="plus" /> Start
          </button>
        )}
      </div>
      {rows.fresh > 0 && (
        <button
          className="fresh"
          onClick={() => {
            scrollTo({ top: 0 });
            rows.settle();
          }}
        >
          ▲ {count(rows.fresh)} new
        </button>
      )}
      {!isLoaded && !hasAny ? (
        error ? <Failure text={error} /> : <Loading what="processes" />
      ) : rows.items.length === 0 ? (
        <Nothing isFiltered={hasAny} />
      ) : (
        <Table
          items={rows.items}
          sort={view.sort}
          isReversed={view.isReversed}
          selected={selected}
          cursor={cursor}
          onSort={sort}
          onSelect={select}
          onSelectAll={selectAll}
        />
      )}
      {selected.size > 0 && !readOnly && (
        <div className="bulk" role="toolbar" aria-label="Selected processes">
          <strong>{count(selected.size)} selected</strong>
          <button className="danger" onClick={() => void killThem(chosen())}>Kill …</button>
          <button onClick={() => void restartThem(chosen())}>Restart …</button>
          <button onClick={() => void transferThem(chosen())}>Transfer …</button>
          <button onClick={() => void removeThem(chosen())}>Remove …</button>
          <button className="quiet" onClick={() => setSelected(new Set())}>Clear</button>
        </div>
      )}
      {query.get("start") !== null && !readOnly && <StartForm onClose={() => setQuery({ start: null })} />}
    </>
  );
}

const Tabs = memo(function Tabs({ current }: { current: Show }) {
  const found = useStore(summary);
  const counts: Record<Show, number | null> = {
    all: found.all,
    running: found.running,
    attention: found.asks.length + found.stalled.length,
    failed: found.failed,
    ended: found.ended,
  };
  return (
    <div className="segments" role="group" aria-label="Show">
      {SHOWS.map(({ show, label }) => (
        <button
          key={show}
          aria-pressed={current === show}
          onClick={() => setQuery({ show: show === "all" ? null : show })}
        >
          {label} <span className="segment-count">{count(counts[show] ?? 0)}</span>
        </button>
      ))}
    </div>
  );
});

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <Empty title="No process fits the filter">
        Press <kbd>esc</kbd> to clear it.
      </Empty>
    );
  return (
    <Empty title="Nothing runs yet">
      Start a process with <kbd>n</kbd>, or from a terminal:{" "}
      <Copyable text="holdfast run -d -- make test" what="the command">
        <code>holdfast run -d -- make test</code>
      </Copyable>
    </Empty>
  );
}

