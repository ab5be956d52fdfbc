export function SessionsPage(_: { rest: string[] }) {
  return null;
}
