export function ProcessPage(_: { rest: string[] }) {
  return null;
}
