import { useEffect, useState } from "react";
import { acknowledge, endSession, inbox, renameSession, sessions as readSessions } from "../../api/operations";
import type { Notification, Session } from "../../api/types";
import { processPath, setQuery, usePlace } from "../../app/router";
import { useReadOnly } from "../../app/session_context";
import { say, sayError } from "../../app/toasts";
import { Ago, Empty, Failure, Link, Loading } from "../../components/basics";
import { askText, confirm } from "../../components/confirm";
import { useRead } from "../../components/useRead";
import { onEvent, processes } from "../../feed/processes";
import { useStore } from "../../feed/store";
import { count, oneLine, plural } from "../../model/format";
import { transferThem } from "../processes/actions";

const SETTLE = 300;

/** Counts up, a moment after an event that changes sessions or inboxes. */
function useSessionChanges(): number {
  const [changes, setChanges] = useState(0);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = onEvent((event) => {
      if (!/^(notification|session|process)\./.test(event.type)) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        setChanges((now) => now + 1);
      }, SETTLE);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, []);
  return changes;
}

export function SessionsPage(_: { rest: string[] }) {
  const changes = useSessionChanges();
  const { query } = usePlace();
  const { value, error, again } = useRead(readSessions, changes);
  if (error) return <Failure text={error} retry={again} />;
  if (value === null) return <Loading what="sessions" />;
  const list = [...value.sessions].sort(
    (one, other) => Number(other.pending > 0) - Number(one.pending > 0) || (other.last_at ?? 0) - (one.last_at ?? 0),
  );
  if (!list.length)
    return (
      <Empty title="No session yet">
        A session is the name of one conversation or shell. It owns processes, and gets their notifications.
      </Empty>
    );
  const chosen = list.find((session) => session.session === query.get("session")) ?? list[0]!;
  return (
    <>
      <div className="page-head">
        <h1>Sessions</h1>
      </div>
      <div className="columns">
        <ul className="side-list" aria-label="Sessions">
          {list.map((session) => (
            <li key={session.session}>
              <button
                aria-pressed={session === chosen}
                onClick={() => setQuery({ session: session.session })}
              >
                <span className="side-title">{oneLine(session.session)}</span>
                <span className="muted">
                  {[session.running && `${count(session.running)} running`, session.ended && `${count(session.ended)} ended`]
                    .filter(Boolean)
                    .join(", ") || "no processes"}
                </span>
                {session.pending > 0 && (
                  <span className="badge badge-alert" title="Notifications that are not acknowledged">
                    {session.pending}
                  </span>
                )}
              </button>
            </li>
          ))}
        </ul>
        <SessionPane key={chosen.session} session={chosen} changes={changes} onChange={again} />
      </div>
    </>
  );
}

interface SessionPaneProps {
  session: Session;
  changes: number;
  onChange(): void;
}

function SessionPane({ session, changes, onChange }: SessionPaneProps) {
  const name = session.session;
  const { value, error, again } = useRead((signal) => inbox(name, signal), changes);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const readOnly = useReadOnly();
  const { all } = useStore(processes);
  const running = [...all.values()].filter((process) => process.session === name && process.status !== "ended");
  const pending = (value?.notifications ?? []).filter((notice) => !hidden.has(notice.id));

  // Shown as done at once; if the daemon refuses, it comes back.
  const ack = async (notices: Notification[]) => {
    const ids = notices.map((notice) => notice.id);
    setHidden(new Set([...hidden, ...ids]));
    try {
      await acknowledge(name, ids);
      onChange();
    } catch (failed) {
      setHidden(new Set([...hidden].filter((id) => !ids.includes(id))));
      sayError(failed);
    }
  };
  const rename = async () => {
    const to = await askText({
      title: `Rename ${name}`,
      text: "Its processes and notifications belong to the new name at once. The old name keeps leading to it.",
      action: "Rename",
      field: { label: "New name", value: name },
    });
    if (to === null || to === name) return;
    try {
      await renameSession(name, to);
      say(`Renamed to ${to}`);
      setQuery({ session: to });
      onChange();
    } catch (failed) {
      sayError(failed);
    }
  };
  const end = async () => {
    const isAgreed = await confirm({
      title: `End the session ${name}?`,
      text: "Processes with the lifetime “session” end. The others go on, and pass to its parent session where it has one.",
      action: "End it",
    });
    if (!isAgreed) return;
    try {
      const done = await endSession(name, null, false);
      say(`Ended: ${plural(done.results.length, "process", "processes")} ended, ${done.passed.length + done.left.length} go on`);
      onChange();
    } catch (failed) {
      sayError(failed);
    }
  };
  return (
    <section className="card pane" aria-label={name}>
      <div className="pane-head">
        <h2>{oneLine(name)}</h2>
        <span className="muted">
          {plural(running.length, "process", "processes")} running
          {session.last_at !== null && (
            <>
              , last start <Ago time={session.last_at} />
            </>
          )}
        </span>
        <span className="pane-actions">
          <Link className="button" to={`/processes?filter=${encodeURIComponent(name)}`}>
            Its processes
          </Link>
          {!readOnly && <button onClick={() => void rename()}>Rename …</button>}
          {!readOnly && running.length > 0 && <button onClick={() => void transferThem(running)}>Transfer …</button>}
          {!readOnly && <button className="danger" onClick={() => void end()}>End …</button>}
        </span>
      </div>
      <div className="pane-head">
        <h3>Inbox</h3>
        {pending.length > 1 && !readOnly && (
          <span className="pane-actions">
            <button onClick={() => void ack(pending)}>Acknowledge all {pending.length}</button>
          </span>
        )}
      </div>
      {error && <Failure text={error} retry={again} />}
      {value && !pending.length && <p className="muted">Nothing is pending: the session has acknowledged everything.</p>}
      <ul className="notices">
        {pending.map((notice) => (
          <li key={notice.id}>
            <details>
              <summary>
                <span className="notice-kind">{notice.kind}</span>
                <span className="notice-summary">{oneLine(notice.summary.replace(` [${name}]`, ""))}</span>
                <span className="muted"><Ago time={notice.at} /></span>
              </summary>
              <pre className="command-block">{notice.text}</pre>
              {notice.process && <Link to={processPath(notice.process)}>Open the process</Link>}
            </details>
            {!readOnly && <button onClick={() => void ack([notice])}>Acknowledge</button>}
          </li>
        ))}
      </ul>
    </section>
  );
}
