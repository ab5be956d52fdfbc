/** What a theme defines, and the CSS variables that are made of it. The daemon has checked every value. */
import { contrast, mix, readable } from "./colours";

export interface ThemeDefinition {
  name: string;
  palette: {
    background?: Layer;
    midground?: Layer;
    foreground?: Layer;
    warmGlow?: string;
    noiseOpacity: number;
  };
  typography: Partial<Record<"fontSans" | "fontMono" | "fontDisplay" | "fontUrl" | "baseSize" | "lineHeight" | "letterSpacing", string>>;
  layout: { radius?: string; density: "compact" | "comfortable" | "spacious" };
  layoutVariant: "standard" | "cockpit" | "tiled";
  assets: Record<string, string> & { custom?: Record<string, string> };
  componentStyles: Record<string, Record<string, string>>;
  colorOverrides: Record<string, string>;
  customCSS: string;
}

interface Layer {
  hex: string;
  alpha: number;
}

type Variables = Record<string, string>;

const DENSITY = { compact: "0.8", comfortable: "1", spacious: "1.25" } as const;
const FONTS = { fontSans: "--font-sans", fontMono: "--font-mono", fontDisplay: "--font-display" } as const;

/** Whether its text is light on a dark background. */
export function schemeOf(definition: ThemeDefinition): "light" | "dark" {
  const background = definition.palette.background?.hex;
  return background !== undefined && contrast(background, "#ffffff") > contrast(background, "#000000") ? "dark" : "light";
}

/** The variables of a theme. `base` reads those of the light or dark page that it is put upon. */
export function variablesOf(definition: ThemeDefinition, base: (name: string) => string): Variables {
  const overrides = Object.entries(definition.colorOverrides).map(([key, value]) => [`--color-${kebab(key)}`, value]);
  return {
    ...colours(definition, base),
    ...layout(definition),
    ...assets(definition.assets),
    ...styles(definition.componentStyles),
    ...Object.fromEntries(overrides),
  };
}

/** As in themes of hermes-agent: the background, and the midground that text and controls are drawn in. */
function colours({ palette }: ThemeDefinition, base: (name: string) => string): Variables {
  const background = palette.background?.hex ?? base("--color-background");
  const text = palette.midground?.hex ?? palette.foreground?.hex ?? base("--color-foreground");
  if (!palette.background && !palette.midground && !palette.foreground) return glow(palette);
  const accent = palette.midground && palette.foreground && palette.foreground.alpha > 0 ? palette.midground.hex : null;
  const foreground = accent && palette.foreground ? palette.foreground.hex : text;
  const card = mix(background, foreground, 0.04);
  const muted = mix(background, foreground, 0.09);
  const primary = readable(accent ?? mix(base("--color-primary"), foreground, 0.35), muted, foreground);
  const found: Variables = {
    "--color-background": background,
    "--color-foreground": foreground,
    "--color-card": card,
    "--color-muted": muted,
    "--color-muted-foreground": readable(mix(background, foreground, 0.66), muted, foreground),
    "--color-border": mix(background, foreground, 0.18),
    "--color-input": mix(background, foreground, 0.36),
    "--color-primary": primary,
    "--color-primary-foreground": readable(background, primary, contrast(primary, "#000000") > 5 ? "#000000" : "#ffffff"),
    "--color-accent": mix(background, primary, 0.16),
    "--color-ring": primary,
    "--color-terminal": mix(background, "#000000", schemeIsDark(background) ? 0.35 : 0),
    "--color-terminal-foreground": foreground,
  };
  for (const name of ["success", "warning", "destructive"]) {
    const colour = base(`--color-${name}`);
    found[`--color-${name}`] = readable(colour, muted, foreground);
    if (name !== "success") found[`--color-${name}-soft`] = mix(background, colour, 0.12);
  }
  for (let index = 0; index < 8; index += 1) {
    found[`--ansi-${index}`] = readable(base(`--ansi-${index}`), found["--color-terminal"]!, foreground);
  }
  return { ...found, ...glow(palette) };
}

const schemeIsDark = (background: string) => contrast(background, "#ffffff") > contrast(background, "#000000");

function glow(palette: ThemeDefinition["palette"]): Variables {
  return {
    ...(palette.warmGlow ? { "--warm-glow": palette.warmGlow } : {}),
    ...(palette.noiseOpacity ? { "--noise-opacity": String(palette.noiseOpacity) } : {}),
  };
}

function layout({ typography, layout: { radius, density } }: ThemeDefinition): Variables {
  const found: Variables = { "--spacing-mul": DENSITY[density] };
  if (radius) found["--radius"] = radius;
  for (const [key, variable] of Object.entries(FONTS)) {
    const value = typography[key as keyof typeof FONTS];
    if (value) found[variable] = value;
  }
  if (typography.baseSize) found["--text"] = typography.baseSize;
  if (typography.lineHeight) found["--line-height"] = typography.lineHeight;
  if (typography.letterSpacing) found["--letter-spacing"] = typography.letterSpacing;
  return found;
}

function assets({ custom, ...named }: ThemeDefinition["assets"]): Variables {
  const own = Object.entries(named).map(([key, value]) => [`--theme-asset-${key}`, value]);
  const others = Object.entries(custom ?? {}).map(([key, value]) => [`--theme-asset-custom-${key}`, value]);
  return Object.fromEntries([...own, ...others]) as Variables;
}

function styles(buckets: ThemeDefinition["componentStyles"]): Variables {
  const found: Variables = {};
  for (const [bucket, properties] of Object.entries(buckets)) {
    for (const [property, value] of Object.entries(properties)) {
      found[`--component-${bucket}-${kebab(property)}`] = value;
    }
  }
  return found;
}

const kebab = (name: string) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
