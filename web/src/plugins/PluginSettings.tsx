/** The plugins, for the page of the settings. */
import { useState } from "react";
import { setPlugin } from "../api/operations";
import { usePages } from "../app/pages";
import { useReadOnly } from "../app/session_context";
import { sayError } from "../app/toasts";
import { StateIcon } from "../components/Icon";
import { useStore } from "../feed/store";
import { oneLine } from "../model/format";
import { unblock } from "./blocked";
import { loadPlugins } from "./load";
import { plugins, unusedSlots, type LoadedPlugin, type PluginState } from "./registry";

const SHOWN = {
  loaded: ["succeeded", "on"],
  loading: ["starting", "loading"],
  failed: ["failed", "failed"],
  blocked: ["stalled", "blocked"],
  off: ["killed", "off"],
} as const satisfies Record<PluginState, readonly [string, string]>;

export function PluginSettings() {
  const found = useStore(plugins);
  const [isBusy, setBusy] = useState(false);
  const rescan = async () => {
    setBusy(true);
    await loadPlugins();
    setBusy(false);
  };
  return (
    <>
      {!found.length && <p className="muted">None. See the page Plugins and themes of the documentation.</p>}
      <ul className="sinks plugins">
        {found.map((one) => (
          <Row key={one.plugin.name} found={one} />
        ))}
      </ul>
      <div className="card-actions">
        <button disabled={isBusy} onClick={() => void rescan()}>
          {isBusy ? "Reading …" : "Look for plugins again"}
        </button>
      </div>
    </>
  );
}

function Row({ found: { plugin, state, problem } }: { found: LoadedPlugin }) {
  const readOnly = useReadOnly();
  const unused = unusedSlots(plugin, usePages());
  const [icon, word] = plugin.error === null ? SHOWN[state] : SHOWN.failed;
  const change = (enabled: boolean) => void setPlugin(plugin.name, enabled).then(loadPlugins).catch(sayError);
  const loadAgain = () => {
    unblock(plugin.name);
    location.reload();
  };
  return (
    <li data-plugin={plugin.name}>
      <span className={`state state-${icon}`}>
        <StateIcon name={icon} />
        <span>{word}</span>
      </span>
      <strong>{oneLine(plugin.label)}</strong>
      <span className="muted">
        {oneLine(plugin.version)} {oneLine(plugin.description)}
      </span>
      {(plugin.error ?? problem) && <span role="status">{oneLine(plugin.error ?? problem ?? "")}</span>}
      {state === "blocked" && <span role="status">It blocked the last load of this page.</span>}
      {unused.length > 0 && <span className="muted">No page here has the slots {unused.join(", ")}.</span>}
      {state === "blocked" && <button onClick={loadAgain}>Load it again</button>}
      {!readOnly && plugin.error === null && (
        <button onClick={() => change(!plugin.enabled)}>{plugin.enabled ? "Disable" : "Enable"}</button>
      )}
    </li>
  );
}
