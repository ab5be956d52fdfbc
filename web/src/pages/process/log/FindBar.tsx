import { useEffect, useState, type RefObject } from "react";
import { count } from "../../../model/format";
import type { FindQuery, Found } from "./useFind";

interface FindBarProps {
  found: Found | null;
  current: number;
  field: RefObject<HTMLInputElement | null>;
  onFind(query: FindQuery): void;
  onStep(step: number): void;
  onClose(): void;
}

export function FindBar({ found, current, field, onFind, onStep, onClose }: FindBarProps) {
  const [query, setQuery] = useState<FindQuery>({ pattern: "", isRegex: false, ignoresCase: true });
  useEffect(() => {
    const timer = setTimeout(() => onFind(query), 250);
    return () => clearTimeout(timer);
    // Searches when the query changes, not when its owner is drawn again.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [query]);
  const change = (part: Partial<FindQuery>) => setQuery((before) => ({ ...before, ...part }));
  return (
    <div className="find" role="search">
      <input
        ref={field}
        autoFocus
        type="search"
        aria-label="Find in the log"
        placeholder="Find in all of the output"
        spellCheck={false}
        value={query.pattern}
        onChange={(event) => change({ pattern: event.target.value })}
        onKeyDown={(event) => {
          if (event.key === "Enter") onStep(event.shiftKey ? -1 : 1);
          else if (event.key === "Escape") onClose();
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      <button aria-pressed={!query.ignoresCase} aria-label="Aa: match case" title="Match case" onClick={() => change({ ignoresCase: !query.ignoresCase })}>
        Aa
      </button>
      <button aria-pressed={query.isRegex} aria-label=".*: regular expression" title="Regular expression (RE2)" onClick={() => change({ isRegex: !query.isRegex })}>
        .*
      </button>
      <span className="find-count" role="status">
        {found && summaryOf(found, current)}
      </span>
      <button aria-label="Previous hit" title="Previous (shift-enter)" disabled={!found?.hits.length} onClick={() => onStep(-1)}>
        ↑
      </button>
      <button aria-label="Next hit" title="Next (enter)" disabled={!found?.hits.length} onClick={() => onStep(1)}>
        ↓
      </button>
      <button className="quiet" aria-label="Close find" onClick={onClose}>
        ✕
      </button>
    </div>
  );
}

function summaryOf(found: Found, current: number): string {
  if (found.error) return found.error;
  const many = `${count(found.count)} ${found.count === 1 ? "hit" : "hits"}`;
  if (!found.isDone) return `${many}, searching ${Math.round(found.progress * 100)} %`;
  if (!found.count) return "no hits";
  return current < 0 ? many : `${count(current + 1)} of ${many}`;
}
