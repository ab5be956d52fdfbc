/** Every page: its path, its label and its component. Extensions add rows, replace components and hide rows. */
import { lazy, type ComponentType } from "react";
import type { IconName } from "../components/Icon";
import { ProcessesPage } from "../pages/processes/ProcessesPage";

export interface PageEntry {
  /** The name of the page's slots: `NAME:top` and `NAME:bottom`. */
  name: string;
  path: string;
  label: string;
  component: ComponentType<{ rest: string[] }>;
  icon?: IconName;
  /** The key after `g` that opens it. */
  key?: string;
  isHidden?: boolean;
}

const page = <T extends string>(load: () => Promise<Record<T, ComponentType<{ rest: string[] }>>>, name: T) =>
  lazy(async () => ({ default: (await load())[name] }));

export const PAGES: PageEntry[] = [
  { name: "processes", path: "/processes", label: "Processes", component: ProcessesPage, icon: "processes" },
  {
    name: "process",
    path: "/processes/*",
    label: "Process",
    component: page(() => import("../pages/process/ProcessPage"), "ProcessPage"),
    isHidden: true,
  },
  {
    name: "approvals",
    path: "/approvals",
    label: "Approvals",
    component: page(() => import("../pages/approvals/ApprovalsPage"), "ApprovalsPage"),
    icon: "approval",
  },
  {
    name: "sessions",
    path: "/sessions",
    label: "Sessions",
    component: page(() => import("../pages/sessions/SessionsPage"), "SessionsPage"),
    icon: "sessions",
  },
  {
    name: "events",
    path: "/events",
    label: "Events",
    component: page(() => import("../pages/events/EventsPage"), "EventsPage"),
    icon: "events",
  },
  {
    name: "projects",
    path: "/projects",
    label: "Projects",
    component: page(() => import("../pages/projects/ProjectsPage"), "ProjectsPage"),
  },
  {
    name: "backends",
    path: "/backends",
    label: "Backends",
    component: page(() => import("../pages/backends/BackendsPage"), "BackendsPage"),
  },
  {
    name: "settings",
    path: "/settings",
    label: "Settings",
    component: page(() => import("../pages/settings/SettingsPage"), "SettingsPage"),
  },
];

export interface FoundPage {
  entry: PageEntry;
  /** The words of the path behind the page's own. */
  rest: string[];
}

export function findPage(path: string): FoundPage | null {
  const words = path.split("/").filter(Boolean);
  if (words.length === 0) return { entry: PAGES[0]!, rest: [] };
  for (const entry of PAGES) {
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
