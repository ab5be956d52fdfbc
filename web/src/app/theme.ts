/** Light or dark: as the system says, or as the user chose. */
import { Store } from "../feed/store";

export type ThemeChoice = "system" | "light" | "dark";

const KEY = "holdfast-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
const saved = localStorage.getItem(KEY);

export const themeChoice = new Store<ThemeChoice>(saved === "light" || saved === "dark" ? saved : "system");
/** What is shown now. */
export const theme = new Store<"light" | "dark">("light");

function apply(): void {
  const choice = themeChoice.get();
  const shown = choice === "system" ? (dark.matches ? "dark" : "light") : choice;
  document.documentElement.dataset.theme = shown;
  theme.set(shown);
}

export function chooseTheme(choice: ThemeChoice): void {
  themeChoice.set(choice);
  if (choice === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, choice);
  apply();
}

export const toggleTheme = () => chooseTheme(theme.get() === "dark" ? "light" : "dark");

dark.addEventListener("change", apply);
apply();
