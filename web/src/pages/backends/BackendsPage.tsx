import { backends as readBackends, cleanBackends, stopBackend } from "../../api/operations";
import type { Backend } from "../../api/types";
import { useReadOnly } from "../../app/session_context";
import { say, sayError } from "../../app/toasts";
import { Failure, Loading } from "../../components/basics";
import { confirm } from "../../components/confirm";
import { StateIcon } from "../../components/Icon";
import { useRead } from "../../components/useRead";
import { oneLine, plural } from "../../model/format";

const PLACE_STATES = { connected: "running", unreachable: "unreachable", closed: "killed" } as const;

export function BackendsPage(_: { rest: string[] }) {
  const { value, error, again } = useRead(readBackends, 0, 15_000);
  const readOnly = useReadOnly();
  if (error) return <Failure text={error} retry={again} />;
  if (value === null) return <Loading what="backends" />;
  const clean = async () => {
    const isAgreed = await confirm({
      title: "Remove what is left over?",
      text: "Containers and sandboxes of holdfast that no place knows are removed.",
      action: "Remove",
    });
    if (!isAgreed) return;
    try {
      const done = await cleanBackends();
      say(done.removed.length ? `Removed ${done.removed.join(", ")}` : "Nothing was left over");
      again();
    } catch (failed) {
      sayError(failed);
    }
  };
  const list = [...value.backends].sort((one, other) => Number(one.state !== "ready") - Number(other.state !== "ready"));
  return (
    <>
      <div className="page-head">
        <h1>Backends</h1>
        <span className="muted">Where commands can run</span>
        {!readOnly && (
          <span className="pane-actions">
            <button onClick={() => void clean()}>Clean up …</button>
          </span>
        )}
      </div>
      <div className="stack backends">
        {list.map((backend) => (
          <BackendCard key={backend.name} backend={backend} readOnly={readOnly} onChange={again} />
        ))}
      </div>
    </>
  );
}

function BackendCard({ backend, readOnly, onChange }: { backend: Backend; readOnly: boolean; onChange(): void }) {
  const isReady = backend.state === "ready";
  const stop = async () => {
    const isAgreed = await confirm({
      title: `Close the places of ${backend.name}?`,
      text: "Places in which nothing runs are closed. The next start opens them again.",
      action: "Close",
    });
    if (!isAgreed) return;
    try {
      const done = await stopBackend(backend.name);
      say(`Closed ${plural(done.closed, "place")}, ${done.kept} kept`);
      onChange();
    } catch (failed) {
      sayError(failed);
    }
  };
  return (
    <section className="card backend">
      <div className="pane-head">
        <h2>{backend.name}</h2>
        <span className={`state ${isReady ? "state-succeeded" : "state-killed"}`}>
          <StateIcon name={isReady ? "succeeded" : "lost"} />
          <span>{isReady ? "ready" : "cannot be used"}</span>
        </span>
        <span className="muted backend-detail">{oneLine(backend.detail)}</span>
        {!readOnly && backend.places.length > 0 && (
          <span className="pane-actions">
            <button onClick={() => void stop()}>Close idle places …</button>
          </span>
        )}
      </div>
      {backend.places.length > 0 && (
        <table className="plain-table">
          <thead>
            <tr>
              <th scope="col">Place</th>
              <th scope="col">State</th>
              <th scope="col">Made with</th>
              <th scope="col" className="number">Processes</th>
            </tr>
          </thead>
          <tbody>
            {backend.places.map((place) => (
              <tr key={place.key}>
                <td>
                  <code>{place.key}</code> {place.task && <span className="muted">{place.task}</span>}
                </td>
                <td>
                  <span className={`state state-${PLACE_STATES[place.state]}`}>
                    <StateIcon name={PLACE_STATES[place.state]} />
                    <span>{place.state}</span>
                  </span>
                  {place.trouble && <div className="muted">{oneLine(place.trouble)}</div>}
                </td>
                <td>
                  <code>
                    {Object.entries(place.options)
                      .map(([name, option]) => `${name}=${typeof option === "object" ? JSON.stringify(option) : String(option)}`)
                      .join(" ")}
                  </code>
                </td>
                <td className="number">{place.processes}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
