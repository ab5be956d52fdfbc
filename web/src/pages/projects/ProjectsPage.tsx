/** Groups of processes that `holdfast up` started: their labels name the file. */
import { useMemo } from "react";
import { controlProject } from "../../api/operations";
import type { Process } from "../../api/types";
import { processPath } from "../../app/router";
import { useReadOnly } from "../../app/session_context";
import { say, sayError } from "../../app/toasts";
import { Ago, Copyable, Empty, Link, Loading, State } from "../../components/basics";
import { confirm } from "../../components/confirm";
import { loaded, processes, put } from "../../feed/processes";
import { useStore } from "../../feed/store";
import { oneLine } from "../../model/format";
import { bornAt, projectOf } from "../../model/state";
import { restartThem } from "../processes/actions";

interface Project {
  name: string;
  file: string | null;
  /** The newest process of each member. */
  members: Process[];
  /** What last brought it up or down from a page. */
  step: Process | null;
}

const ACTIONS = ["up", "down"] as const;

function projectsOf(all: ReadonlyMap<string, Process>): Project[] {
  const found = new Map<string, Map<string, Process>>();
  for (const process of all.values()) {
    const name = projectOf(process);
    if (name === null) continue;
    const members = found.get(name) ?? new Map<string, Process>();
    found.set(name, members);
    const member = memberOf(process, name);
    const before = members.get(member);
    if (!before || bornAt(process) > bornAt(before)) members.set(member, process);
  }
  return [...found]
    .map(([name, found]) => {
      const members = [...found.values()].sort((one, other) => bornAt(one) - bornAt(other));
      return { name, file: members.at(-1)?.labels["project.file"] ?? null, members, step: stepOf(all, name) };
    })
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

function stepOf(all: ReadonlyMap<string, Process>, project: string): Process | null {
  const names = new Set<string | null>(ACTIONS.map((action) => `${project}-${action}`));
  const found = [...all.values()].filter((process) => names.has(process.name) && process.argv.includes("holdfast"));
  return found.reduce<Process | null>((last, one) => (last === null || bornAt(one) > bornAt(last) ? one : last), null);
}

function memberOf(process: Process, project: string): string {
  const name = process.name ?? process.id;
  return name.startsWith(`${project}.`) ? name.slice(project.length + 1) : name;
}

export function ProjectsPage(_: { rest: string[] }) {
  const { all, version } = useStore(processes);
  const isLoaded = useStore(loaded);
  const readOnly = useReadOnly();
  const projects = useMemo(() => projectsOf(all), [all, version]);
  if (!isLoaded) return <Loading what="projects" />;
  if (!projects.length)
    return (
      <Empty title="No project was started">
        Write a <code>holdfast.toml</code> that names your processes, then{" "}
        <Copyable text="holdfast up -d" what="the command">
          <code>holdfast up -d</code>
        </Copyable>
      </Empty>
    );
  const control = async (project: Project, action: "up" | "down") => {
    const live = project.members.filter((process) => process.status !== "ended");
    const isAgreed =
      action === "up" ||
      (await confirm({
        title: `Bring ${project.name} down?`,
        text: "Each process ends after those that depend on it, with everything that it started.",
        action: `End ${live.length}`,
        typed: live.length > 1 ? String(live.length) : undefined,
      }));
    if (!isAgreed) return;
    try {
      put(await controlProject(project.name, action));
      say(action === "up" ? `Bringing ${project.name} up …` : `Bringing ${project.name} down …`);
    } catch (error) {
      sayError(error);
    }
  };
  return (
    <>
      <div className="page-head">
        <h1>Projects</h1>
      </div>
      <div className="stack">
        {projects.map((project) => {
          const live = project.members.filter((process) => process.status !== "ended");
          return (
            <section key={project.name} className="card">
              <div className="pane-head">
                <h2>{project.name}</h2>
                <span className="muted">
                  {live.length} of {project.members.length} running
                </span>
                {!readOnly && (
                  <span className="pane-actions">
                    <button
                      className={live.length < project.members.length ? "primary" : ""}
                      title="Starts what does not run, and restarts what the file changed, in order"
                      onClick={() => void control(project, "up")}
                    >
                      Up
                    </button>
                    <button onClick={() => void restartThem(project.members)}>Restart …</button>
                    {live.length > 0 && <button className="danger" onClick={() => void control(project, "down")}>Down …</button>}
                  </span>
                )}
              </div>
              <div className="project-facts">
                {project.file && (
                  <Copyable text={project.file} what="the path of the file">
                    <code>{oneLine(project.file)}</code>
                  </Copyable>
                )}
                {project.step && <Step process={project.step} />}
              </div>
              <table className="plain-table">
                <thead>
                  <tr>
                    <th scope="col">Process</th>
                    <th scope="col">State</th>
                    <th scope="col" className="wide-cell">Command</th>
                    <th scope="col">Ready</th>
                    <th scope="col" className="number">Started</th>
                  </tr>
                </thead>
                <tbody>
                  {project.members.map((process) => (
                    <tr key={process.id}>
                      <td><Link to={processPath(process.id)}>{memberOf(process, project.name)}</Link></td>
                      <td><State process={process} /></td>
                      <td className="wide-cell"><code>{oneLine(process.command)}</code></td>
                      <td>
                        {process.ready === null ? "" : process.ready ? <span className="ready">ready</span> : "not yet"}{" "}
                        {(process.ports ?? []).map((port) => `:${port}`).join(" ")}
                      </td>
                      <td className="number">{process.started_at && <Ago time={process.started_at} />}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </section>
          );
        })}
      </div>
    </>
  );
}

/** What the last `up` or `down` from a page does, or how it ended. */
function Step({ process }: { process: Process }) {
  return (
    <span className="project-step">
      <Link to={processPath(process.id, "log")}>holdfast {process.name?.endsWith("-up") ? "up" : "down"}</Link>
      <State process={process} />
      {process.ended_at && <Ago time={process.ended_at} />}
    </span>
  );
}
