/** Loads the scripts and styles of plugins, one after the other, and puts their pages among the others. */
import { createElement } from "react";
import { plugins as readPlugins } from "../api/operations";
import { sentenceOf } from "../api/problem";
import type { Plugin } from "../api/types";
import { extendPages, type PageExtension } from "../app/pages";
import { say } from "../app/toasts";
import { begin, blocked, end, findBlocked } from "./blocked";
import { PluginPage } from "./PluginPage";
import { components, isLoading, plugins, remove, setState, type LoadedPlugin } from "./registry";

/** Scripts that run in this page; none runs twice. */
const scripts = new Set<string>();
const LOAD_TIMEOUT = 30_000;

/** Reads the list again: new plugins are loaded, and those that were disabled are taken off the page. */
export async function loadPlugins(): Promise<void> {
  try {
    const culprit = findBlocked();
    if (culprit) say(`The plugin ${culprit} blocked the last load of this page. It is off in this browser: see Settings.`, true);
    const found = (await readPlugins()).plugins;
    for (const { plugin } of plugins.get()) if (!found.some((one) => one.name === plugin.name)) remove(plugin.name);
    plugins.set(found.map(initial));
    const fresh = plugins.get().filter((one) => one.state === "loading");
    if (fresh.length) {
      const { installSdk } = await import("./sdk");
      installSdk();
      showPages();
      for (const { plugin } of fresh) await load(plugin);
    } else showPages();
  } catch (failed) {
    say(`The plugins cannot be read. ${sentenceOf(failed)}`, true);
  } finally {
    isLoading.set(false);
  }
}

function initial(plugin: Plugin): LoadedPlugin {
  const before = plugins.get().find((one) => one.plugin.name === plugin.name);
  if (!plugin.enabled || plugin.error !== null) {
    remove(plugin.name);
    return { plugin, state: "off", problem: plugin.error };
  }
  if (blocked().includes(plugin.name)) return { plugin, state: "blocked", problem: null };
  const isThere = scripts.has(plugin.name) && before !== undefined && before.state !== "off";
  return isThere ? { ...before, plugin } : { plugin, state: "loading", problem: null };
}

async function load(plugin: Plugin): Promise<void> {
  const base = `/dashboard-plugins/${plugin.name}/`;
  if (scripts.has(plugin.name)) {
    setState(plugin.name, "failed", "It was disabled meanwhile. Reload this page to run it again.");
    return;
  }
  if (plugin.css) document.head.append(styles(base + plugin.css, plugin));
  let problem: string | null = null;
  const onError = (event: ErrorEvent) => {
    if (new URL(event.filename || "/", location.href).pathname.startsWith(base)) problem = event.message;
  };
  addEventListener("error", onError);
  begin(plugin.name);
  try {
    await run(base + plugin.entry, plugin);
    scripts.add(plugin.name);
    // Its components are drawn for the first time within this pause.
    await new Promise((resolve) => setTimeout(resolve, 50));
  } catch {
    problem = "Its script cannot be loaded.";
  } finally {
    end();
    removeEventListener("error", onError);
  }
  if (problem === null && plugin.tab && !plugin.tab.hidden && !components.get().has(plugin.name))
    problem = "Its script registered no page.";
  setState(plugin.name, problem === null ? "loaded" : "failed", problem);
}

function run(source: string, plugin: Plugin): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    setIntegrity(script, plugin, plugin.entry);
    script.onload = resolve;
    script.onerror = reject;
    setTimeout(reject, LOAD_TIMEOUT);
    script.src = source;
    document.head.append(script);
  });
}

function styles(source: string, plugin: Plugin): HTMLLinkElement {
  const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: source });
  if (plugin.css) setIntegrity(link, plugin, plugin.css);
  return link;
}

function setIntegrity(element: HTMLScriptElement | HTMLLinkElement, plugin: Plugin, path: string): void {
  const hash = (plugin.integrity as Record<string, string>)[path];
  if (hash) element.integrity = hash;
}

function showPages(): void {
  const shown = plugins.get().filter((one) => one.plugin.tab !== null && one.state !== "off" && one.state !== "blocked");
  extendPages(shown.map(({ plugin }) => page(plugin)));
}

function page(plugin: Plugin): PageExtension {
  const tab = plugin.tab!;
  return {
    name: plugin.name,
    path: tab.path,
    label: plugin.label,
    component: () => createElement(PluginPage, { name: plugin.name }),
    isHidden: tab.hidden,
    position: tab.position,
    override: tab.override,
  };
}
