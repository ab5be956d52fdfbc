/** Colours as `#rrggbb`: mixed, and compared as WCAG does. */

const LEAST_CONTRAST = 4.6;

function channels(hex: string): [number, number, number] {
  const digits = hex.replace("#", "");
  const full = digits.length === 3 ? [...digits].map((digit) => digit + digit).join("") : digits;
  const value = Number.parseInt(full, 16);
  return Number.isNaN(value) ? [0, 0, 0] : [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

/** `share` of the second colour in the first. */
export function mix(first: string, second: string, share: number): string {
  const other = channels(second);
  const mixed = channels(first).map((value, index) => Math.round(value + (other[index]! - value) * share));
  return `#${mixed.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

function luminance(hex: string): number {
  const [red, green, blue] = channels(hex).map((value) => {
    const share = value / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

export function contrast(one: string, other: string): number {
  const [low, high] = [luminance(one), luminance(other)].sort((first, second) => first - second);
  return (high! + 0.05) / (low! + 0.05);
}

/** The colour, or one nearer to `towards`, that can be read on this background. */
export function readable(colour: string, background: string, towards: string): string {
  let found = colour;
  for (let share = 0.1; contrast(found, background) < LEAST_CONTRAST && share <= 1.001; share += 0.1) {
    found = mix(colour, towards, share);
  }
  return found;
}
