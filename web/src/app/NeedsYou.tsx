/** What needs the user, above every page, each with the one action that it needs. Quiet when all is well. */
import { useEffect, useState, type ReactNode } from "react";
import type { Process } from "../api/types";
import { Ago, Link, State } from "../components/basics";
import { StateIcon, Icon } from "../components/Icon";
import { ApprovalButtons } from "../components/ApprovalButtons";
import { SendForm } from "../components/SendForm";
import { markShown, pendingApprovals } from "../feed/approvals";
import { dismiss, summary } from "../feed/summary";
import { useStore } from "../feed/store";
import { oneLine, plural } from "../model/format";
import { useIsPhone } from "../components/useIsPhone";
import { titleOf } from "../model/state";
import { useReadOnly } from "./session_context";
import { processPath } from "./router";

/** Rows before the rest is folded, on the list of processes and on other pages; on a phone the others have none. */
const MOST = { list: 4, other: 1 };
const MOST_ON_PHONE = { list: 2, other: 0 };

interface Need {
  key: string;
  /** Of thousands only the first few are drawn. */
  row(): ReactNode;
}

interface NeedsYouProps {
  /** The name of the page below. */
  page: string;
  /** The process that the page shows. */
  process: string | undefined;
  /** The session whose conversation the page shows, with its approvals. */
  session?: string | undefined;
}

export function NeedsYou({ page, process: shownId, session }: NeedsYouProps) {
  const needs = useStore(summary);
  const approvals = useStore(pendingApprovals);
  const [showsAll, setShowsAll] = useState(false);
  const readOnly = useReadOnly();
  const isPhone = useIsPhone();
  // A request that is folded away was not shown to the user.
  const folded = isPhone && page !== "processes" && page !== "approvals" && !showsAll;
  useEffect(() => {
    const show = () => !folded && markShown(approvals.filter((one) => one.session !== session));
    show();
    document.addEventListener("visibilitychange", show);
    return () => document.removeEventListener("visibilitychange", show);
  }, [approvals, folded, session]);

  const rows: Need[] = [
    ...(page === "approvals" ? [] : approvals.filter((one) => one.session !== session)).map((approval) => ({
      key: approval.id,
      row: () => (
        <>
          <span className="state state-asks">
            <Icon name="approval" />
            <span>approve</span>
          </span>
          <span className="need-what">
            <code title={approval.command}>{oneLine(approval.command)}</code>
            <span className="muted">
              {approval.session} · {approval.why}
            </span>
          </span>
          {!readOnly && <ApprovalButtons approval={approval} />}
        </>
      ),
    })),
    ...needs.asks.map((process) => ({ key: process.id, row: () => <Asks process={process} /> })),
    ...needs.stalled.map((process) => ({ key: process.id, row: () => <Trouble process={process} /> })),
    ...failureRows(needs.failures),
  ].filter(({ key }) => key !== shownId);
  if (!rows.length) return null;
  const most = (isPhone ? MOST_ON_PHONE : MOST)[page === "processes" ? "list" : "other"];
  const shown = showsAll ? rows : rows.slice(0, most);
  const fold = rows.length > most && (
    <button className="quiet" aria-expanded={showsAll} onClick={() => setShowsAll(!showsAll)}>
      {showsAll ? "less" : most ? `${rows.length - most} more` : `${rows.length} ▾`}
    </button>
  );
  return (
    <section className="needs" aria-label="Needs you">
      <div className="needs-head">
        <h2>Needs you</h2>
        {isPhone && fold}
      </div>
      <ul>
        {shown.map(({ key, row }, index) => (
          <li key={key}>
            {row()}
            {!isPhone && index === shown.length - 1 && fold}
          </li>
        ))}
      </ul>
    </section>
  );
}

function What({ process, children }: { process: Process; children: ReactNode }) {
  return (
    <span className="need-what">
      <Link to={processPath(process.id)}>
        {process.name ? <strong>{process.name}</strong> : <code>{oneLine(process.command)}</code>}
      </Link>
      <span className="muted">{process.session}</span>
      {children}
    </span>
  );
}

function Asks({ process }: { process: Process }) {
  const [isTyping, setTyping] = useState(false);
  const asked = process.needs_input as { prompt?: string; secret?: boolean } | null;
  const readOnly = useReadOnly();
  return (
    <>
      <State process={process} />
      <What process={process}>
        <q>{oneLine(asked?.prompt ?? "")}</q>
      </What>
      {!readOnly && (
        <span className="need-actions">
          {isTyping ? (
            <SendForm process={process} isSecret={asked?.secret ?? false} onDone={() => setTyping(false)} />
          ) : (
            <button className="primary" onClick={() => setTyping(true)}>
              Type …
            </button>
          )}
          <Link className="button" to={processPath(process.id, process.pty ? "terminal" : "log")}>
            {process.pty ? "Open terminal" : "Open log"}
          </Link>
        </span>
      )}
    </>
  );
}

function Trouble({ process }: { process: Process }) {
  const since = (process.stall_data as { last_output_at?: number } | null)?.last_output_at;
  return (
    <>
      <State process={process} />
      <What process={process}>
        <span className="muted">
          {process.trouble ?? process.ready_trouble ?? (since ? <>last output <Ago time={since} /></> : "no output")}
        </span>
      </What>
      <span className="need-actions">
        <Link className="button" to={processPath(process.id)}>
          Open log
        </Link>
      </span>
    </>
  );
}

function failureRows(failures: Process[]): Need[] {
  if (failures.length > 3)
    return [
      {
        key: "failures",
        row: () => (
          <>
            <span className="state state-failed">
              <StateIcon name="failed" />
              <span>failed</span>
            </span>
            <span className="need-what">
              {plural(failures.length, "process", "processes")} failed in the last 30 minutes
              <span className="muted">{failures.slice(0, 4).map(titleOf).join(", ")} …</span>
            </span>
            <span className="need-actions">
              <Link className="button" to="/processes?show=failed">
                Show them
              </Link>
              <button onClick={() => dismiss(failures)}>Dismiss</button>
            </span>
          </>
        ),
      },
    ];
  return failures.map((process) => ({
    key: process.id,
    row: () => (
      <>
        <State process={process} />
        <What process={process}>{process.ended_at && <span className="muted"><Ago time={process.ended_at} /></span>}</What>
        <span className="need-actions">
          <Link className="button" to={processPath(process.id)}>
            See why
          </Link>
          <button onClick={() => dismiss([process])}>Dismiss</button>
        </span>
      </>
    ),
  }));
}
