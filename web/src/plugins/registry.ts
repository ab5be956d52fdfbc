/** What the plugins of this page are, what they have registered, and how far each has come. */
import type { ComponentType } from "react";
import type { Plugin } from "../api/types";
import { clearSlots, fillSlot, filledSlots, shownSlots } from "../components/Slot";
import { Store } from "../feed/store";

export type PluginState = "loading" | "loaded" | "failed" | "blocked" | "off";

export interface LoadedPlugin {
  plugin: Plugin;
  state: PluginState;
  /** Why it failed. */
  problem: string | null;
}

export const SHELL_SLOTS = [
  ...["backdrop", "header-left", "header-right", "header-banner", "sidebar"],
  ...["pre-main", "post-main", "footer-left", "footer-right", "overlay"],
];

export const plugins = new Store<readonly LoadedPlugin[]>([]);
/** The pages that plugins have registered, by the name of the plugin. */
export const components = new Store<ReadonlyMap<string, ComponentType>>(new Map());
/** Until the plugins of the first load are there: a path may be that of a page which comes. */
export const isLoading = new Store(true);

export function setState(name: string, state: PluginState, problem: string | null = null): void {
  plugins.set(plugins.get().map((one) => (one.plugin.name === name ? { ...one, state, problem } : one)));
}

const isActive = (name: string) =>
  plugins.get().some((one) => one.plugin.name === name && one.state !== "off" && one.state !== "blocked");

export function register(name: string, component: ComponentType): void {
  if (isActive(name)) components.set(new Map([...components.get(), [name, component]]));
}

export function registerSlot(name: string, slot: string, component: ComponentType): void {
  if (isActive(name)) fillSlot({ owner: name, slot, component });
}

/** Takes everything of a plugin off the page. Its script goes on until the page is loaded again. */
export function remove(name: string): void {
  clearSlots(name);
  components.set(new Map([...components.get()].filter(([owner]) => owner !== name)));
}

/** Slots that a plugin names or fills, and that no page has. */
export function unusedSlots(plugin: Plugin, pages: readonly { name: string }[]): string[] {
  const known = new Set([...SHELL_SLOTS, ...shownSlots()]);
  for (const page of pages) for (const place of ["top", "bottom"]) known.add(`${page.name}:${place}`);
  const filled = filledSlots().filter((entry) => entry.owner === plugin.name);
  return [...new Set([...plugin.slots, ...filled.map((entry) => entry.slot)])].filter((slot) => !known.has(slot));
}
