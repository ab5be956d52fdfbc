/** What can be done to a process, with honest progress for what cannot be undone. */
import { useEffect, useState } from "react";
import { kill, signal } from "../../api/operations";
import { sentenceOf } from "../../api/problem";
import type { KillResult, Process } from "../../api/types";
import { useKeys } from "../../app/keys";
import { navigate } from "../../app/router";
import { useReadOnly } from "../../app/session_context";
import { copy, say, sayError } from "../../app/toasts";
import { confirm } from "../../components/confirm";
import { Icon } from "../../components/Icon";
import { touch } from "../../feed/processes";
import { titleOf } from "../../model/state";
import { removeThem, restartThem, transferThem } from "../processes/actions";

const GRACE = 10;
const SIGNALS = ["INT", "HUP", "USR1", "USR2", "STOP", "CONT", "KILL"];

interface Killing {
  begun: number;
  result: KillResult | null;
  error: string | null;
}

export function Actions({ process }: { process: Process }) {
  const readOnly = useReadOnly();
  const [killing, setKilling] = useState<Killing | null>(null);
  const [isOpen, setOpen] = useState(false);
  const isLive = process.status !== "ended";

  const askKill = async () => {
    if (!isLive || readOnly) return;
    const isAgreed = await confirm({
      title: `Kill ${titleOf(process)}?`,
      text: `SIGTERM first. What is left after ${GRACE} seconds gets SIGKILL, with everything that it started.`,
      action: "Kill",
    });
    if (!isAgreed) return;
    setKilling({ begun: Date.now(), result: null, error: null });
    try {
      const result = await kill(process.id, GRACE);
      setKilling((now) => now && { ...now, result });
      setTimeout(() => setKilling(null), 6000);
    } catch (error) {
      setKilling((now) => now && { ...now, error: sentenceOf(error) });
    }
    touch(process.id);
  };
  const sendSignal = async (name: string) => {
    setOpen(false);
    try {
      const { sent } = await signal(process.id, name);
      say(`SIG${name} was sent to ${sent ?? 0} of its processes`);
    } catch (error) {
      sayError(error);
    }
  };
  const run = (action: (found: Process[]) => Promise<void>) => () => {
    setOpen(false);
    if (!readOnly) void action([process]);
  };

  useKeys("Process", [
    { key: "x", does: "kill", run: () => void askKill() },
    { key: "r", does: "restart", run: run(restartThem) },
    { key: "y", does: "copy the id", run: () => void copy(process.id, "the id") },
    { key: "escape", does: "all processes", run: () => navigate("/processes") },
  ]);

  return (
    <div className="process-actions">
      {killing && <KillProgress killing={killing} />}
      {!readOnly && (
        <>
          <button onClick={run(restartThem)}>Restart</button>
          {isLive && (
            <button className="danger" disabled={killing !== null && !killing.result && !killing.error} onClick={() => void askKill()}>
              Kill
            </button>
          )}
          <div className="menu" onBlur={(event) => !event.currentTarget.contains(event.relatedTarget) && setOpen(false)}>
            <button aria-label="More actions" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
              <Icon name="down" />
            </button>
            {isOpen && (
              <div className="menu-list">
                <button onClick={run(transferThem)}>Transfer …</button>
                {!isLive && <button onClick={run(removeThem)}>Remove …</button>}
                <button onClick={() => void copy(process.command, "the command")}>Copy the command</button>
                {isLive && SIGNALS.map((name) => (
                  <button key={name} onClick={() => void sendSignal(name)}>
                    Send SIG{name}
                  </button>
                ))}
              </div>
            )}
          </div>
        </>
      )}
    </div>
  );
}

function KillProgress({ killing }: { killing: Killing }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 250);
    return () => clearInterval(timer);
  }, []);
  const left = Math.max(0, Math.ceil(GRACE - (now - killing.begun) / 1000));
  const { result, error } = killing;
  const text = error
    ? error
    : result
      ? result.status === "ended"
        ? result.forced
          ? "Ended, forced by SIGKILL"
          : "Ended"
        : `${result.survivors.length} of its processes are still alive`
      : left > 0
        ? `Asked to end · forced in ${left} s`
        : "Forcing it …";
  return (
    <span className={error ? "kill-progress is-error" : "kill-progress"} role="status">
      {!result && !error && <span className="spinner" aria-hidden="true" />}
      {text}
    </span>
  );
}
