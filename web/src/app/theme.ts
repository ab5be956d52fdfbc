/** What the page looks like: as the system says, or as the user chose. The choice is kept in this browser. */
import { Store } from "../feed/store";
import { applyTheme } from "../themes/apply";
import type { ThemeDefinition } from "../themes/definition";

/** `system`, `light`, `dark` or the name of another theme. */
export type ThemeChoice = string;

const KEY = "holdfast-theme";
/** The definition of the chosen theme, so that it is there before the daemon answers. */
const DEFINITION_KEY = "holdfast-theme-definition";
const dark = matchMedia("(prefers-color-scheme: dark)");

export const themeChoice = new Store<ThemeChoice>(localStorage.getItem(KEY) ?? "system");
/** The name of the theme that is shown; changes when colours do. */
export const theme = new Store<string>("light");
/** Whether it is a light or a dark one. */
export const scheme = new Store<"light" | "dark">("light");

function saved(): ThemeDefinition | null {
  try {
    const found = JSON.parse(localStorage.getItem(DEFINITION_KEY) ?? "null") as ThemeDefinition | null;
    return found?.name === themeChoice.get() ? found : null;
  } catch {
    return null;
  }
}

function apply(): void {
  const choice = themeChoice.get();
  const isPlain = choice === "light" || choice === "dark";
  const definition = isPlain || choice === "system" ? null : saved();
  scheme.set(applyTheme(definition, isPlain ? choice : dark.matches ? "dark" : "light"));
  theme.set(definition?.name ?? scheme.get());
}

/** `definition`: of a theme that is not one of the page's own. */
export function chooseTheme(choice: ThemeChoice, definition: ThemeDefinition | null = null): void {
  themeChoice.set(choice);
  if (choice === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, choice);
  if (definition === null) localStorage.removeItem(DEFINITION_KEY);
  else localStorage.setItem(DEFINITION_KEY, JSON.stringify(definition));
  apply();
}

export const toggleTheme = () => chooseTheme(scheme.get() === "dark" ? "light" : "dark");

dark.addEventListener("change", apply);
apply();
