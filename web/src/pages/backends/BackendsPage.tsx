export function BackendsPage(_: { rest: string[] }) {
  return null;
}
