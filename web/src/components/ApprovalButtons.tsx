import { useState } from "react";
import { approve, deny, typePassword } from "../api/operations";
import type { Approval } from "../api/types";
import { settle } from "../feed/approvals";
import { say, sayError } from "../app/toasts";

const SCOPES = [
  { scope: "once", label: "Once", title: "Allow exactly this, one time" },
  { scope: "session", label: "Session", title: "Allow exactly this until its session ends" },
  { scope: "always", label: "Always", title: "Allow exactly this in every session, until it is revoked" },
];

export function ApprovalButtons({ approval }: { approval: Approval }) {
  const [isBusy, setBusy] = useState(false);
  const decide = async (decision: Promise<Approval>) => {
    setBusy(true);
    try {
      const done = await decision;
      settle(done);
      say(`${done.state === "approved" ? "Approved" : "Denied"}: ${approval.command.slice(0, 60)}`);
    } catch (error) {
      sayError(error);
    } finally {
      setBusy(false);
    }
  };
  if (approval.action === "sudo") return <PasswordForm approval={approval} isBusy={isBusy} decide={decide} />;
  return (
    <span className="need-actions" role="group" aria-label="Decide">
      {SCOPES.map(({ scope, label, title }) => (
        <button
          key={scope}
          className={scope === "once" ? "primary" : ""}
          title={title}
          disabled={isBusy}
          onClick={() => void decide(approve(approval.id, scope))}
        >
          {label}
        </button>
      ))}
      <button className="danger" disabled={isBusy} onClick={() => void decide(deny(approval.id))}>
        Deny
      </button>
    </span>
  );
}

interface PasswordProps {
  approval: Approval;
  isBusy: boolean;
  decide(decision: Promise<Approval>): Promise<void>;
}

function PasswordForm({ approval, isBusy, decide }: PasswordProps) {
  const [password, setPassword] = useState("");
  return (
    <form
      className="need-actions"
      onSubmit={(event) => {
        event.preventDefault();
        if (password) void decide(typePassword(approval.id, password));
      }}
    >
      <input
        type="password"
        autoComplete="off"
        aria-label="Password for sudo"
        placeholder="Password for sudo"
        value={password}
        onChange={(event) => setPassword(event.target.value)}
      />
      <button className="primary" disabled={isBusy || !password}>
        Send
      </button>
      <button type="button" className="danger" disabled={isBusy} onClick={() => void decide(deny(approval.id))}>
        Deny
      </button>
    </form>
  );
}
