import { useEffect, useState, type ReactNode } from "react";
import { readDetails, type ProcessDetails } from "../../api/operations";
import { sentenceOf } from "../../api/problem";
import type { Process } from "../../api/types";
import { Ago, Copyable, Failure, Loading } from "../../components/basics";
import { duration, exact, oneLine, size } from "../../model/format";
import { clientsOf, typedOf } from "../../model/state";

const ENDS: Record<string, string> = { any: "every end", failure: "failures", success: "successes", never: "nothing" };

export function DetailsTab({ process }: { process: Process }) {
  const [details, setDetails] = useState<ProcessDetails | null>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    readDetails(process.id).then(setDetails, (failed: unknown) => setError(sentenceOf(failed)));
  }, [process.id, process.status]);
  if (error) return <Failure text={error} />;
  if (details === null) return <Loading what="the details" />;
  const spec = details.spec ?? {};
  const env = Object.entries((spec.env as Record<string, string> | undefined) ?? {});
  const [clients, typed] = [clientsOf(process), typedOf(process)];
  const omitted = (spec.omitted as string[] | undefined) ?? [];
  return (
    <div className="details">
      <Section title="Command">
        <pre className="command-block">{process.command}</pre>
        <Row label="Directory"><Copyable text={process.cwd} what="the directory" /></Row>
        <Row label="Runs on">{process.place ? `${process.backend}, ${process.place}` : process.backend === "local" ? "this machine" : process.backend}</Row>
        {process.argv.at(-1) === process.command ? (
          <Row label="Shell"><code>{process.argv[0]}</code></Row>
        ) : (
          <Row label="Arguments"><code>{oneLine(JSON.stringify(process.argv))}</code></Row>
        )}
      </Section>
      <Section title="Identity">
        <Row label="Id"><Copyable text={process.id} /></Row>
        <Row label="Name">{process.name}</Row>
        <Row label="Session">{process.session}</Row>
        <Row label="Task">{process.task}</Row>
        <Row label="Pid">{process.pid}</Row>
        <Row label="Lifetime">{process.lifetime}</Row>
        <Row label="Labels">{Object.entries(process.labels).map(([key, value]) => `${key}=${value}`).join(" ") || null}</Row>
      </Section>
      <Section title="Life">
        <Row label="Requested">{process.created_at && <Ago time={process.created_at} />}</Row>
        <Row label="Started">{process.started_at && exact(process.started_at)}</Row>
        <Row label="Ready">{process.ready_at ? exact(process.ready_at) : process.ready_by ? `not yet, by ${process.ready_by}` : null}</Row>
        <Row label="Ended">{process.ended_at && exact(process.ended_at)}</Row>
        <Row label="Reason">{process.reason}</Row>
        <Row label="CPU time">{process.cpu_seconds !== null && duration(process.cpu_seconds)}</Row>
        <Row label="Restart">{process.restarts ? `${process.restart}, ${process.restarts} so far` : process.restart}</Row>
        <Row label="Deadline">{process.deadline_at && exact(process.deadline_at)}</Row>
        <Row label="Trouble">{process.trouble ?? process.ready_trouble}</Row>
        <Row label="Still alive after its end">{process.leftover_pids.length ? process.leftover_pids.join(", ") : null}</Row>
      </Section>
      <Section title="Input and output">
        <Row label="Terminal">{process.pty ? `${process.cols}×${process.rows}` : "none"}</Row>
        <Row label="Attached">
          {clients.length > 0 &&
            clients.map(({ by, since }, index) => (
              <span key={`${by} ${since}`}>{index > 0 && ", "}{by}, <Ago time={since} /></span>
            ))}
        </Row>
        <Row label="Last typed">{typed && <>{typed.by}, <Ago time={typed.at} /></>}</Row>
        <Row label="Output">{size(process.output_bytes)}, the last {size(process.log_cap)} are kept</Row>
        <Row label="Notifies of">{process.notify && (ENDS[process.notify] ?? process.notify)}</Row>
        <Row label="Watches">{process.watch.length ? process.watch.join(", ") : null}</Row>
        <Row label="Limits">{process.limits && limitsOf(process.limits)}</Row>
      </Section>
      <Section title="Environment that was set for it">
        {env.map(([name, value]) => (
          <Row key={name} label={name}><code>{oneLine(value)}</code></Row>
        ))}
        {omitted.map((name) => (
          <Row key={name} label={name}><span className="muted">a secret; not shown</span></Row>
        ))}
        {!env.length && !omitted.length && <p className="muted">None: it has the environment of its caller.</p>}
      </Section>
    </div>
  );
}

function limitsOf(limits: Record<string, unknown>): string {
  return Object.entries(limits)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name} ${name === "memory" ? size(Number(value)) : String(value)}`)
    .join(", ");
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="card">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

function Row({ label, children }: { label: string; children: ReactNode }) {
  if (children === null || children === undefined || children === false || children === "") return null;
  return (
    <div className="detail">
      <span className="muted">{label}</span>
      <span>{children}</span>
    </div>
  );
}
