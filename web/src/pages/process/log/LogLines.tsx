import { memo, type ReactNode } from "react";
import { rawText, spansOf } from "../../../model/ansi";
import { clock, exact } from "../../../model/format";

interface LogRowProps {
  start: number;
  text: string;
  time: number | null;
  showsTime: boolean;
  isRaw: boolean;
  isMarked: boolean;
  marker: RegExp | null;
  onLink(start: number): void;
}

export const LogRow = memo(function LogRow(props: LogRowProps) {
  const { start, text, time, showsTime, isRaw, isMarked, marker, onLink } = props;
  return (
    <div className={isMarked ? "log-row is-marked" : "log-row"} data-start={start}>
      <a
        className="log-gutter"
        href={`?at=${start}`}
        tabIndex={-1}
        aria-hidden="true"
        title={`${time === null ? "" : `${exact(time)} · `}byte ${start.toLocaleString("en-US")}: link to this line`}
        onClick={(event) => {
          if (event.ctrlKey || event.metaKey) return;
          event.preventDefault();
          onLink(start);
        }}
      >
        {showsTime ? (time === null ? "--:--:--" : clock(time)) : "›"}
      </a>
      <span className="log-text">{isRaw ? marked(rawText(text), marker) : coloured(text, marker)}</span>
    </div>
  );
});

function coloured(text: string, marker: RegExp | null): ReactNode {
  const spans = spansOf(text);
  if (!spans.length || (spans.length === 1 && !spans[0]!.text)) return "\u200b";
  return spans.map((span, index) => (
    <span key={index} style={span.style}>
      {marked(span.text, marker)}
    </span>
  ));
}

function marked(text: string, marker: RegExp | null): ReactNode {
  if (marker === null) return text;
  const parts: ReactNode[] = [];
  let at = 0;
  for (const found of text.matchAll(marker)) {
    if (!found[0]) continue;
    parts.push(text.slice(at, found.index), <mark key={found.index}>{found[0]}</mark>);
    at = found.index + found[0].length;
  }
  return parts.length ? [...parts, text.slice(at)] : text;
}
