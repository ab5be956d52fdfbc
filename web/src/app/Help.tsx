import { Dialog } from "../components/basics";
import { keyLayers } from "./keys";

export function Help({ onClose }: { onClose(): void }) {
  const layers = keyLayers()
    .map((layer) => ({ ...layer, bindings: layer.bindings.filter((binding) => !binding.isHidden) }))
    .filter((layer) => layer.bindings.length)
    .reverse();
  return (
    <Dialog title="Keyboard" onClose={onClose} className="help">
      <h2>Keyboard</h2>
      <div className="help-columns">
        {layers.map((layer) => (
          <section key={layer.title}>
            <h3>{layer.title}</h3>
            <dl>
              {layer.bindings.map((binding) => (
                <div key={binding.key}>
                  <dt>
                    <kbd>{binding.key.replace("-", " ").replace("ctrl k", "ctrl K")}</kbd>
                  </dt>
                  <dd>{binding.does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <button autoFocus onClick={onClose}>
        Close
      </button>
    </Dialog>
  );
}
