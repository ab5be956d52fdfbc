/** The terminal emulator; this module is loaded when the first terminal is shown. */
import { FitAddon } from "@xterm/addon-fit";
import { SearchAddon } from "@xterm/addon-search";
import { SerializeAddon } from "@xterm/addon-serialize";
import { WebglAddon } from "@xterm/addon-webgl";
import { Terminal, type ITheme } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";

const LARGEST_FONT = 13;
const SMALLEST_FONT = 9;

export interface Emulator {
  terminal: Terminal;
  fit: FitAddon;
  search: SearchAddon;
  serialize: SerializeAddon;
  /** Colours of the page's theme. */
  paint(): void;
  /** The largest letters with which all columns are visible, within reason. */
  scale(): void;
  /** The screen as text, a line per row. */
  text(): string;
  dispose(): void;
}

function themeOf(): ITheme {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const ansi = (index: number) => color(`--ansi-${index}`);
  const names = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;
  const theme: Record<string, string> = {
    background: color("--color-terminal"),
    foreground: color("--color-terminal-foreground"),
    cursor: color("--color-primary"),
    cursorAccent: color("--color-terminal"),
    selectionBackground: color("--color-highlight"),
    selectionForeground: color("--color-highlight-foreground"),
  };
  names.forEach((name, index) => {
    theme[name] = ansi(index);
    theme[`bright${name[0]!.toUpperCase()}${name.slice(1)}`] = ansi(index);
  });
  return theme;
}

export function createEmulator(element: HTMLElement, cols: number, rows: number, isInteractive: boolean): Emulator {
  const font = getComputedStyle(document.documentElement).getPropertyValue("--font-mono");
  const terminal = new Terminal({
    cols,
    rows,
    fontFamily: font,
    fontSize: LARGEST_FONT,
    lineHeight: 1.15,
    scrollback: 2000,
    cursorBlink: false,
    disableStdin: !isInteractive,
    allowProposedApi: true,
    theme: themeOf(),
    minimumContrastRatio: 4.5,
  });
  const fit = new FitAddon();
  const search = new SearchAddon();
  const serialize = new SerializeAddon();
  terminal.loadAddon(fit);
  terminal.loadAddon(search);
  terminal.loadAddon(serialize);
  terminal.open(element);
  try {
    const webgl = new WebglAddon();
    webgl.onContextLoss(() => webgl.dispose());
    terminal.loadAddon(webgl);
  } catch {
    // Without WebGL xterm draws with DOM elements.
  }
  return {
    terminal,
    fit,
    search,
    serialize,
    paint: () => {
      terminal.options.theme = themeOf();
    },
    scale: () => scale(terminal, element),
    text: () => textOf(terminal),
    dispose: () => terminal.dispose(),
  };
}

function scale(terminal: Terminal, element: HTMLElement): void {
  const screen = element.querySelector<HTMLElement>(".xterm-screen");
  const frame = element.parentElement;
  if (!screen || !frame || !screen.clientWidth) return;
  const size = terminal.options.fontSize ?? LARGEST_FONT;
  const wanted = Math.floor((size * (frame.clientWidth - 16)) / screen.clientWidth);
  const next = Math.max(SMALLEST_FONT, Math.min(LARGEST_FONT, wanted));
  if (next !== size) terminal.options.fontSize = next;
}

function textOf(terminal: Terminal): string {
  const buffer = terminal.buffer.active;
  const lines: string[] = [];
  for (let row = 0; row < terminal.rows; row += 1)
    lines.push(buffer.getLine(buffer.baseY + row)?.translateToString(true) ?? "");
  return lines.join("\n").trimEnd();
}
