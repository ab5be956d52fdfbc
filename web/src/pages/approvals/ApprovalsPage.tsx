export function ApprovalsPage(_: { rest: string[] }) {
  return null;
}
