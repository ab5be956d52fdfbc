export function ProjectsPage(_: { rest: string[] }) {
  return null;
}
