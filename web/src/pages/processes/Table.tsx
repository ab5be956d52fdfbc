/** The table: only rows on the screen exist, whatever the number of processes. */
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { memo, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { useIsPhone } from "../../components/useIsPhone";
import { watchRows } from "../../feed/processes";
import { plural } from "../../model/format";
import { Row } from "./Row";
import type { Item, SortKey } from "./view";

const HEADS: { key: SortKey; label: string; className: string }[] = [
  { key: "state", label: "State", className: "cell-state" },
  { key: "command", label: "Command", className: "cell-command" },
  { key: "name", label: "Name", className: "cell-name" },
  { key: "session", label: "Session", className: "cell-session" },
  { key: "activity", label: "", className: "cell-note" },
  { key: "cpu", label: "CPU", className: "cell-cpu number" },
  { key: "memory", label: "Memory", className: "cell-memory number" },
  { key: "age", label: "Age", className: "cell-age number" },
];

/** Pixels of the window that are kept free above and below the row with the cursor: the header and the bar cover them. */
const ABOVE = 96;
const BELOW = 64;
/** Rows above and below the window that exist, too. */
const OVERSCAN = 4;

interface TableProps {
  items: Item[];
  sort: SortKey;
  isReversed: boolean;
  selected: ReadonlySet<string>;
  cursor: string | null;
  onSort(key: SortKey): void;
  onSelect(id: string, isRange: boolean): void;
  onSelectAll(): void;
}

export const Table = memo(function Table(props: TableProps) {
  const { items, sort, isReversed, selected, cursor, onSort, onSelect, onSelectAll } = props;
  const body = useRef<HTMLDivElement>(null);
  const isPhone = useIsPhone();
  const [margin, setMargin] = useState(0);
  const rowHeight = isPhone ? 104 : 48;
  const virtual = useWindowVirtualizer({
    count: items.length,
    estimateSize: (index) => (items[index]?.kind === "group" ? 36 : rowHeight),
    overscan: OVERSCAN,
    useFlushSync: false,
    scrollMargin: margin,
    // Another function would have all rows measured anew.
    getItemKey: useCallback(
      (index: number) => {
        const item = items[index]!;
        return item.kind === "row" ? item.id : `group ${item.label}`;
      },
      [items],
    ),
  });
  // What is above the table comes and goes.
  useLayoutEffect(() => {
    const measure = () => setMargin(Math.round((body.current?.getBoundingClientRect().top ?? 0) + scrollY));
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    measure();
    return () => observer.disconnect();
  }, []);
  const measured = useRef(rowHeight);
  useEffect(() => {
    if (measured.current !== rowHeight) virtual.measure();
    measured.current = rowHeight;
  }, [virtual, rowHeight]);

  const shown = virtual.getVirtualItems();
  const ids = shown.map((one) => items[one.index]).flatMap((item) => (item?.kind === "row" ? [item.id] : []));
  const idsKey = ids.join(" ");
  useEffect(() => {
    watchRows(idsKey ? idsKey.split(" ") : []);
    return () => watchRows([]);
  }, [idsKey]);

  useEffect(() => {
    if (cursor === null) return;
    const index = items.findIndex((item) => item.kind === "row" && item.id === cursor);
    if (index < 0) return;
    // Not `scrollToIndex`: it lays the page out again in every frame until the scroll has settled.
    const place = virtual.measurementsCache[index];
    if (place) scrollTo(0, Math.max(place.end + BELOW - innerHeight, Math.min(scrollY, place.start - ABOVE)));
    requestAnimationFrame(() =>
      body.current?.querySelector<HTMLElement>(`[data-id="${cursor}"] .row-link`)?.focus({ preventScroll: true }),
    );
    // Only when the cursor moves: rows that change must not take the focus.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [cursor]);

  const isAll = selected.size > 0 && items.every((item) => item.kind === "group" || selected.has(item.id));
  return (
    <div className="table" role="table" aria-label="Processes" aria-rowcount={items.length + 1}>
      <div role="rowgroup" className="table-head">
        <div role="row" className="row row-head" aria-rowindex={1}>
          <span role="columnheader" className="cell-check">
            <input type="checkbox" checked={isAll} aria-label="Select all that are shown" onChange={onSelectAll} />
          </span>
          {HEADS.map((head) => (
            <span
              key={head.className}
              role="columnheader"
              className={head.className}
              aria-sort={sort === head.key && head.label ? (isReversed ? "descending" : "ascending") : undefined}
            >
              {head.label ? (
                <button className="head-button" onClick={() => onSort(head.key)}>
                  {head.label}
                  {sort === head.key && <span aria-hidden="true">{isReversed ? "↑" : "↓"}</span>}
                </button>
              ) : (
                <span className="hidden-text">Notes</span>
              )}
            </span>
          ))}
        </div>
      </div>
      <div role="rowgroup" ref={body} className="table-body" style={{ height: virtual.getTotalSize() }}>
        {shown.map((one) => {
          const item = items[one.index];
          const style = { transform: `translateY(${one.start - margin}px)`, height: one.size };
          if (item === undefined) return null;
          if (item.kind === "group")
            return (
              <div key={one.key} role="row" aria-rowindex={one.index + 2} className="group-row" style={style}>
                <span role="cell">
                  <strong>{item.label}</strong>
                  <span className="muted">
                    {plural(item.count, "process", "processes")}, {item.running} running
                  </span>
                </span>
              </div>
            );
          return (
            <div key={one.key} role="presentation" className="row-place" style={style}>
              <Row
                id={item.id}
                isSelected={selected.has(item.id)}
                isCursor={cursor === item.id}
                index={one.index}
                onSelect={onSelect}
              />
            </div>
          );
        })}
      </div>
    </div>
  );
});
