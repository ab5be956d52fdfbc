/** Every page: its path, its label and its component. Extensions add rows, replace components and hide rows. */
import { lazy, type ComponentType } from "react";
import { readProcess } from "../api/operations";
import type { IconName } from "../components/Icon";
import { put } from "../feed/processes";
import { Store, useStore } from "../feed/store";
import { ProcessesPage } from "../pages/processes/ProcessesPage";

export interface PageEntry {
  /** The name of the page's slots: `NAME:top` and `NAME:bottom`. */
  name: string;
  path: string;
  label: string;
  component: ComponentType<{ rest: string[] }>;
  /** Loads its script. */
  load?: () => Promise<unknown>;
  /** Reads what it shows first, while the rest of the page is drawn. */
  prepare?: (rest: string[]) => Promise<unknown>;
  icon?: IconName;
  /** The key after `g` that opens it. */
  key?: string;
  isHidden?: boolean;
}

const page = <T extends string>(load: () => Promise<Record<T, ComponentType<{ rest: string[] }>>>, name: T) => ({
  component: lazy(async () => ({ default: (await load())[name] })),
  load,
});

const chat = page(() => import("../pages/chat/ChatPage"), "ChatPage");

export const PAGES: PageEntry[] = [
  { name: "processes", path: "/processes", label: "Processes", component: ProcessesPage, icon: "processes" },
  {
    name: "process",
    path: "/processes/*",
    label: "Process",
    ...page(() => import("../pages/process/ProcessPage"), "ProcessPage"),
    prepare: ([id = ""]) => readProcess(id).then(put),
    isHidden: true,
  },
  {
    name: "chat",
    path: "/chat",
    label: "Chat",
    ...chat,
    icon: "chat",
  },
  { name: "chat", path: "/chat/*", label: "Chat", ...chat, isHidden: true },
  {
    name: "approvals",
    path: "/approvals",
    label: "Approvals",
    ...page(() => import("../pages/approvals/ApprovalsPage"), "ApprovalsPage"),
    icon: "approval",
  },
  {
    name: "sessions",
    path: "/sessions",
    label: "Sessions",
    ...page(() => import("../pages/sessions/SessionsPage"), "SessionsPage"),
    icon: "sessions",
  },
  {
    name: "events",
    path: "/events",
    label: "Events",
    ...page(() => import("../pages/events/EventsPage"), "EventsPage"),
    icon: "events",
  },
  {
    name: "projects",
    path: "/projects",
    label: "Projects",
    ...page(() => import("../pages/projects/ProjectsPage"), "ProjectsPage"),
  },
  {
    name: "backends",
    path: "/backends",
    label: "Backends",
    ...page(() => import("../pages/backends/BackendsPage"), "BackendsPage"),
  },
  {
    name: "settings",
    path: "/settings",
    label: "Settings",
    ...page(() => import("../pages/settings/SettingsPage"), "SettingsPage"),
  },
];

/** A page that a plugin adds. `position`: `end`, `after:NAME` or `before:NAME`; `override`: the path of a page to replace. */
export interface PageExtension extends PageEntry {
  position: string;
  override: string | null;
}

const all = new Store<readonly PageEntry[]>(PAGES);
export const usePages = () => useStore(all);

/** The pages are ours and these. A path that is taken already stays as it is. */
export function extendPages(extensions: PageExtension[]): void {
  const found = [...PAGES];
  for (const page of extensions) {
    const replaced = page.override === "/" ? 0 : found.findIndex((one) => one.path === page.override);
    if (replaced >= 0) found[replaced] = { ...found[replaced]!, component: page.component };
    else if (!found.some((one) => one.path === page.path)) found.splice(positionOf(page.position, found), 0, page);
  }
  all.set(found);
}

function positionOf(position: string, found: PageEntry[]): number {
  const [where, name] = position.split(":");
  const index = found.findIndex((one) => one.name === name);
  return index < 0 ? found.length : where === "before" ? index : index + 1;
}

export interface FoundPage {
  entry: PageEntry;
  /** The words of the path behind the page's own. */
  rest: string[];
}

export function findPage(path: string): FoundPage | null {
  const words = path.split("/").filter(Boolean);
  if (words.length === 0) return { entry: all.get()[0]!, rest: [] };
  for (const entry of all.get()) {
    const own = entry.path.split("/").filter((word) => word && word !== "*");
    const hasRest = entry.path.endsWith("/*");
    const fits = own.every((word, index) => words[index] === word);
    const length = words.length - own.length;
    if (fits && (hasRest ? length > 0 : length === 0)) return { entry, rest: words.slice(own.length).map(decoded) };
  }
  return null;
}

function decoded(word: string): string {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}
