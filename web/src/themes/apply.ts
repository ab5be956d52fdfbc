/** Puts a theme on the page, and takes off all of the one before. */
import { schemeOf, variablesOf, type ThemeDefinition } from "./definition";

const root = document.documentElement;
let applied: string[] = [];
let sheet: CSSStyleSheet | null = null;
let font: HTMLLinkElement | null = null;

/** The scheme that is shown. Null takes a theme off: the page has the colours of the scheme alone. */
export function applyTheme(definition: ThemeDefinition | null, scheme: "light" | "dark"): "light" | "dark" {
  for (const name of applied) root.style.removeProperty(name);
  applied = [];
  setSheet(null);
  font?.remove();
  font = null;
  const shown = definition === null ? scheme : schemeOf(definition);
  root.dataset.theme = shown;
  root.dataset.themeName = definition?.name ?? shown;
  root.dataset.layoutVariant = definition?.layoutVariant ?? "standard";
  if (definition === null) return shown;
  const style = getComputedStyle(root);
  const variables = variablesOf(definition, (name) => style.getPropertyValue(name).trim());
  for (const [name, value] of Object.entries(variables)) root.style.setProperty(name, value);
  applied = Object.keys(variables);
  setSheet(definition);
  if (definition.typography.fontUrl) {
    font = Object.assign(document.createElement("link"), { rel: "stylesheet", href: definition.typography.fontUrl });
    document.head.append(font);
  }
  return shown;
}

/** CSS of the theme's own, for this theme alone: text that closes the scope early is not used. */
function setSheet(definition: ThemeDefinition | null): void {
  const others = document.adoptedStyleSheets.filter((one) => one !== sheet);
  sheet = null;
  if (definition?.customCSS) {
    const made = new CSSStyleSheet();
    made.replaceSync(`@scope (:root[data-theme-name="${definition.name}"]) {\n${definition.customCSS}\n}`);
    if (made.cssRules.length === 1) sheet = made;
    else console.error(`The customCSS of the theme ${definition.name} has a } too many: it is not used.`);
  }
  document.adoptedStyleSheets = sheet === null ? others : [...others, sheet];
}
