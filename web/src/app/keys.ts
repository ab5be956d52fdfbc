/** One map of keys for the whole page. A page adds its own while it is shown; the newest wins. */
import { useEffect, useRef } from "react";

export interface KeyBinding {
  key: string;
  does: string;
  run(event: KeyboardEvent): void;
  /** Not listed in the help. */
  isHidden?: boolean;
  /** Also while a text field has the focus. */
  inFields?: boolean;
}

interface Layer {
  title: string;
  bindings: KeyBinding[];
}

const layers: { current: Layer }[] = [];

export function nameOf(event: KeyboardEvent): string {
  const name = event.key === " " ? "space" : event.key.length === 1 ? event.key : event.key.toLowerCase();
  return (event.ctrlKey || event.metaKey ? "ctrl-" : "") + name;
}

const FIELDS = new Set(["INPUT", "TEXTAREA", "SELECT"]);

function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement) || target.matches("[type=checkbox]")) return false;
  return FIELDS.has(target.tagName) || target.isContentEditable;
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.altKey) return;
  const name = nameOf(event);
  const inField = isField(event.target);
  // The modal on top keeps the keys.
  const hasModal = document.querySelector("dialog[open]") !== null;
  if (hasModal && name !== "ctrl-k") return;
  // Enter and space belong to the control that has the focus; space does nothing to a link.
  const controls = { enter: "button, a, summary, [role=tab]", space: "button, summary, input, [role=tab]" }[name];
  if (controls && event.target instanceof HTMLElement && event.target.closest(controls)) return;
  for (const layer of [...layers].reverse()) {
    const found = layer.current.bindings.find((binding) => binding.key === name && (!inField || binding.inFields));
    if (found) {
      event.preventDefault();
      found.run(event);
      return;
    }
  }
});

/** These keys work while the component is shown. */
export function useKeys(title: string, bindings: KeyBinding[]): void {
  const layer = useRef<Layer>({ title, bindings });
  layer.current = { title, bindings };
  useEffect(() => {
    layers.push(layer);
    return () => {
      layers.splice(layers.indexOf(layer), 1);
    };
  }, []);
}

export const keyLayers = (): Layer[] => layers.map((layer) => layer.current);
