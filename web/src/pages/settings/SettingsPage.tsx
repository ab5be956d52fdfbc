export function SettingsPage(_: { rest: string[] }) {
  return null;
}
