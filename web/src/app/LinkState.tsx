/** Says when the page is not up to date, and what happens next. Short cuts are not mentioned. */
import { useEffect, useState } from "react";
import { link, loadError, reconnectNow } from "../feed/processes";
import { useStore } from "../feed/store";

/** A cut that lasts for less is not shown. */
const TOLERATED = 400;

export function LinkState() {
  const state = useStore(link);
  const error = useStore(loadError);
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    setLate(false);
    if (state === "open") return;
    const timer = setTimeout(() => setLate(true), TOLERATED);
    return () => clearTimeout(timer);
  }, [state]);
  if (state === "open" && error === null) return null;
  if (state !== "open" && !isLate) return null;
  return (
    <div className="link-state" role="status">
      <span className="spinner" aria-hidden="true" />
      {state === "open" ? (
        <span>{error}</span>
      ) : (
        <span>
          The daemon does not answer. Your processes go on; this page shows what was last known and reconnects by itself.
        </span>
      )}
      {state !== "open" && <button onClick={reconnectNow}>Reconnect now</button>}
    </div>
  );
}
