import { memo } from "react";
import type { Process } from "../../api/types";
import { processPath } from "../../app/router";
import { Link, Sparkline, State } from "../../components/basics";
import { useNow } from "../../feed/clock";
import { processes } from "../../feed/processes";
import { useRow } from "../../feed/use";
import { duration, exact, oneLine, percent, size } from "../../model/format";
import { ageOf, bornAt } from "../../model/state";

interface RowProps {
  id: string;
  isSelected: boolean;
  isCursor: boolean;
  index: number;
  onSelect(id: string, isRange: boolean): void;
}

export const Row = memo(function Row({ id, isSelected, isCursor, index, onSelect }: RowProps) {
  const row = useRow(id);
  if (row === null) return null;
  const { process, line, use } = row;
  const isLive = process.status !== "ended";
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className={`row${isSelected ? " is-selected" : ""}${isCursor ? " is-cursor" : ""}${isLive ? "" : " is-ended"}`}
      data-id={process.id}
    >
      <span role="cell" className="cell-check">
        <input
          type="checkbox"
          checked={isSelected}
          aria-label={`Select ${process.name ?? process.command.slice(0, 60)}`}
          onChange={() => undefined}
          onClick={(event) => onSelect(process.id, event.shiftKey)}
        />
      </span>
      <span role="cell" className="cell-state">
        <State process={process} />
      </span>
      <span role="cell" className="cell-command">
        <Link to={processPath(process.id)} className="row-link" title={process.command}>
          <code>{oneLine(process.command)}</code>
        </Link>
        <span className="last-line">{line || "\u00a0"}</span>
      </span>
      <span role="cell" className="cell-name" title={process.name ?? undefined}>
        {process.name}
      </span>
      <span role="cell" className="cell-session" title={process.session}>
        {process.session}
      </span>
      <span role="cell" className="cell-note">
        <Note process={process} />
      </span>
      <span role="cell" className="cell-cpu number">
        {isLive && <Sparkline values={use.cpu} />}
        {isLive && use.lastCpu !== null && <span className="cpu-value">{percent(use.lastCpu)}</span>}
      </span>
      <span role="cell" className="cell-memory number">
        {process.rss_bytes !== null ? (
          size(process.rss_bytes)
        ) : process.peak_rss_bytes ? (
          <span className="muted" title="Highest memory use">
            {size(process.peak_rss_bytes)}
          </span>
        ) : null}
      </span>
      <span role="cell" className="cell-age number">
        <Age process={process} />
      </span>
    </div>
  );
});

function Age({ process }: { process: Process }) {
  const now = useNow();
  const age = ageOf(process, now);
  if (age === null) return null;
  const title = `from ${exact(bornAt(process))}${process.ended_at ? ` to ${exact(process.ended_at)}` : ""}`;
  if (process.ended_at === null) return <span title={title}>{duration(age)}</span>;
  return (
    <span title={title}>
      {duration(age)}
      <span className="muted ended-ago">{duration(now - process.ended_at)} ago</span>
    </span>
  );
}

/** The seconds from a time to now, or the other way round where it is to come. */
function Since({ time }: { time: number }) {
  return duration(Math.abs(useNow() - time));
}

function Waits({ process }: { process: Process }) {
  const { all } = processes.get();
  const others = (process.after ?? []).map((id) => all.get(id)?.name ?? id).join(", ");
  const text = others ? `after ${others}` : `in the queue ${process.queue}`;
  return (
    <span className="muted" title={text}>
      {text}
    </span>
  );
}

function Note({ process }: { process: Process }) {
  if (process.status === "restarting" && process.restart_at)
    return (
      <span className="muted">
        again in <Since time={process.restart_at} />
      </span>
    );
  if (process.status === "waiting") return <Waits process={process} />;
  if (process.status === "ended") {
    if (process.killed_by) return <span className="muted">by {process.killed_by}</span>;
    return process.restarts ? <span className="muted">{process.restarts} restarts</span> : null;
  }
  if (process.needs_input) return <q>{oneLine((process.needs_input as { prompt?: string }).prompt ?? "")}</q>;
  if (process.stalled) {
    const last = (process.stall_data as { last_output_at?: number } | null)?.last_output_at;
    return <span className="muted">no output {last ? <Since time={last} /> : ""}</span>;
  }
  const ports = process.ports ?? [];
  return (
    <>
      {process.ready && <span className="ready">ready</span>}
      {ports.slice(0, 2).map((port) => (
        <a key={port} href={`http://localhost:${port}`} target="_blank" rel="noreferrer">
          :{port}
        </a>
      ))}
      {ports.length > 2 && <span className="muted">+{ports.length - 2}</span>}
      {process.restarts ? <span className="muted">↻ {process.restarts}</span> : null}
    </>
  );
}
