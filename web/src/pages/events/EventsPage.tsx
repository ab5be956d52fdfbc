export function EventsPage(_: { rest: string[] }) {
  return null;
}
