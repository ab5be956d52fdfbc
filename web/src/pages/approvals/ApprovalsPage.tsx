import { useState } from "react";
import { approvals as readApprovals, deny } from "../../api/operations";
import type { Approval } from "../../api/types";
import { processPath } from "../../app/router";
import { useReadOnly } from "../../app/session_context";
import { say, sayError } from "../../app/toasts";
import { ApprovalButtons } from "../../components/ApprovalButtons";
import { Ago, Copyable, Empty, Failure, Link, Loading } from "../../components/basics";
import { useRead } from "../../components/useRead";
import { useNow } from "../../feed/clock";
import { approvalChanges, pendingApprovals } from "../../feed/approvals";
import { processes } from "../../feed/processes";
import { useStore } from "../../feed/store";
import { duration, oneLine } from "../../model/format";

const ACTIONS: Record<string, string> = {
  start: "wants to run",
  restart: "wants to run again",
  send: "wants to type",
  sudo: "asks for your password",
};

export function ApprovalsPage(_: { rest: string[] }) {
  const changes = useStore(approvalChanges);
  const live = useStore(pendingApprovals);
  const [showsAll, setShowsAll] = useState(false);
  const { value, error, again } = useRead((signal) => readApprovals(showsAll, signal), `${changes} ${showsAll}`, 10_000);
  const readOnly = useReadOnly();
  if (error) return <Failure text={error} retry={again} />;
  if (value === null) return <Loading what="approvals" />;
  const ids = new Set(live.map((approval) => approval.id));
  const pending = [...live, ...value.approvals.filter((one) => one.state === "pending" && !ids.has(one.id))];
  const now = Date.now() / 1000;
  const standing = value.approvals.filter(
    (one) => one.state === "approved" && (one.scope !== "once" || one.used_at === null) && (one.expires_at ?? now) >= now,
  );
  const over = value.approvals.filter((one) => one.state !== "pending" && !standing.includes(one));
  const revoke = async (approval: Approval) => {
    try {
      await deny(approval.id);
      say("Revoked");
      again();
    } catch (failed) {
      sayError(failed);
    }
  };
  return (
    <>
      <div className="page-head">
        <h1>Approvals</h1>
        <label className="check-label">
          <input type="checkbox" checked={showsAll} onChange={() => setShowsAll(!showsAll)} /> Show past requests
        </label>
      </div>
      {pending.length === 0 && (
        <Empty title="Nothing waits for you">
          When an agent wants to do something dangerous, it asks here: a recursive delete, a forced push, a dropped table.
        </Empty>
      )}
      <ul className="approvals">
        {pending.map((approval) => (
          <PendingCard key={approval.id} approval={approval} readOnly={readOnly} />
        ))}
      </ul>
      {standing.length > 0 && (
        <section className="section">
          <h2>Allowed until you revoke it</h2>
          <table className="plain-table">
            <thead>
              <tr>
                <th scope="col">Command</th>
                <th scope="col">For</th>
                <th scope="col">Decided</th>
                <th scope="col"><span className="hidden-text">Actions</span></th>
              </tr>
            </thead>
            <tbody>
              {standing.map((approval) => (
                <tr key={approval.id}>
                  <td><code>{oneLine(approval.command)}</code></td>
                  <td>{approval.scope === "session" ? `session ${approval.session}` : approval.scope}</td>
                  <td>{approval.decided_at && <Ago time={approval.decided_at} />}</td>
                  <td className="number">
                    {!readOnly && <button onClick={() => void revoke(approval)}>Revoke</button>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      {showsAll && over.length > 0 && (
        <section className="section">
          <h2>Past requests</h2>
          <table className="plain-table">
            <thead>
              <tr>
                <th scope="col">Command</th>
                <th scope="col">Session</th>
                <th scope="col">Decision</th>
                <th scope="col">When</th>
              </tr>
            </thead>
            <tbody>
              {[...over].reverse().slice(0, 200).map((approval) => (
                <tr key={approval.id}>
                  <td><code>{oneLine(approval.command)}</code></td>
                  <td>{approval.session}</td>
                  <td>{approval.state}{approval.scope ? `, ${approval.scope}` : ""}{approval.decided_by ? `, by ${approval.decided_by}` : ""}</td>
                  <td><Ago time={approval.decided_at ?? approval.at} /></td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </>
  );
}

function PendingCard({ approval, readOnly }: { approval: Approval; readOnly: boolean }) {
  const now = useNow();
  const { all } = useStore(processes);
  const left = approval.expires_at === null ? null : approval.expires_at - now;
  return (
    <li className="card approval">
      <p>
        <strong>{approval.session}</strong> {ACTIONS[approval.action] ?? approval.action}
        {all.has(approval.process) && (
          <>
            {" in "}
            <Link to={processPath(approval.process)}>{all.get(approval.process)?.name ?? approval.process}</Link>
          </>
        )}
      </p>
      <pre className="command-block">{approval.command}</pre>
      <dl className="approval-why">
        <div>
          <dt>Why it asks</dt>
          <dd>
            {approval.why}
            {approval.rule && <span className="muted"> (rule {approval.rule})</span>}
          </dd>
        </div>
        <div>
          <dt>Where</dt>
          <dd>
            <Copyable text={approval.cwd} what="the directory" />
            {approval.backend !== "local" && ` on ${approval.backend}`}
          </dd>
        </div>
        <div>
          <dt>Asked</dt>
          <dd>
            <Ago time={approval.at} />
            {left !== null && left > 0 && <span className="muted">, expires in {duration(left)}</span>}
          </dd>
        </div>
      </dl>
      {!readOnly && <ApprovalButtons approval={approval} />}
    </li>
  );
}
