import { useEffect, useState, type ComponentType } from "react";
import { explain, readProcess } from "../../api/operations";
import { Problem, sentenceOf } from "../../api/problem";
import type { Process } from "../../api/types";
import { useKeys } from "../../app/keys";
import { navigate, processPath } from "../../app/router";
import { Ago, Copyable, Empty, Failure, Link, Loading, State } from "../../components/basics";
import { Icon } from "../../components/Icon";
import { SendForm } from "../../components/SendForm";
import { useRootClass } from "../../components/useRootClass";
import { useReadOnly } from "../../app/session_context";
import { useNow } from "../../feed/clock";
import { processes, put, touch, watchRows } from "../../feed/processes";
import { usePart } from "../../feed/store";
import { duration, oneLine } from "../../model/format";
import { ageOf, stateOf } from "../../model/state";
import { Actions } from "./Actions";
import { DetailsTab } from "./DetailsTab";
import { LogTab } from "./log/LogTab";
import { ResourcesTab } from "./ResourcesTab";
import { TerminalTab } from "./terminal/TerminalTab";
import { TimelineTab } from "./TimelineTab";

const TABS: { name: string; label: string; component: ComponentType<{ process: Process }>; key?: string }[] = [
  { name: "log", label: "Log", component: LogTab, key: "l" },
  { name: "terminal", label: "Terminal", component: TerminalTab, key: "t" },
  { name: "timeline", label: "Timeline", component: TimelineTab },
  { name: "resources", label: "Resources", component: ResourcesTab },
  { name: "details", label: "Details", component: DetailsTab },
];

export function ProcessPage({ rest }: { rest: string[] }) {
  const [asked = "", tab] = rest;
  const process = usePart(processes, (now) => now.all.get(asked));
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    setError(null);
    let isGone = false;
    readProcess(asked).then(
      (found) => {
        if (isGone) return;
        put(found);
        // A name or a short id leads to the page of the id.
        if (found.id !== asked) navigate(processPath(found.id, tab ?? ""), true);
      },
      (failed: unknown) => !isGone && setError(failed),
    );
    return () => {
      isGone = true;
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [asked]);
  useEffect(() => {
    watchRows([asked]);
    return () => watchRows([]);
  }, [asked]);
  if (process) return <Shown process={process} tab={tab} />;
  if (error instanceof Problem && error.status === 404)
    return (
      <Empty title="This process is not known any more">
        <Link to="/processes">All processes</Link>
      </Empty>
    );
  return error ? <Failure text={sentenceOf(error)} retry={() => touch(asked)} /> : <Loading what="the process" />;
}

function Shown({ process, tab }: { process: Process; tab: string | undefined }) {
  const usual = process.pty && process.status !== "ended" ? "terminal" : "log";
  const tabs = TABS.filter((one) => one.name !== "terminal" || process.pty);
  const current = tabs.find((one) => one.name === (tab ?? usual)) ?? tabs[0]!;
  useRootClass("has-output", current.name === "log" || current.name === "terminal");
  useKeys(
    "Tabs",
    tabs.flatMap((one) =>
      one.key ? [{ key: one.key, does: one.label.toLowerCase(), run: () => navigate(processPath(process.id, one.name), true) }] : [],
    ),
  );
  return (
    <div className={`process process-${current.name}`}>
      <div className="process-head">
        <Link to="/processes" className="back" title="All processes (esc)">
          <Icon name="back" />
          <span className="hidden-text">All processes</span>
        </Link>
        <h1>
          {process.name && <span className="process-name">{process.name}</span>}
          <code title={process.command}>{oneLine(process.command)}</code>
        </h1>
        <Actions process={process} />
      </div>
      <div className="process-facts">
        <State process={process} />
        <Facts process={process} />
      </div>
      <Why process={process} />
      <nav className="tabs" aria-label="Parts of the process">
        {tabs.map((one) => (
          <Link key={one.name} to={processPath(process.id, one.name)} className="tab" current={one === current}>
            {one.label}
          </Link>
        ))}
      </nav>
      <div className="tab-body">
        <current.component key={process.id} process={process} />
      </div>
    </div>
  );
}

function Facts({ process }: { process: Process }) {
  const now = useNow();
  const age = ageOf(process, now);
  return (
    <>
      {process.ready && <span className="ready">ready</span>}
      {(process.ports ?? []).map((port) => (
        <a key={port} href={`http://localhost:${port}`} target="_blank" rel="noreferrer">
          :{port}
        </a>
      ))}
      {process.pid !== null && <span>pid {process.pid}</span>}
      <Link to={`/processes?filter=${encodeURIComponent(process.session)}`}>{process.session}</Link>
      {age !== null && <span>{process.status === "ended" ? `ran ${duration(age)}` : duration(age)}</span>}
      {process.ended_at && <span>ended <Ago time={process.ended_at} /></span>}
      {process.backend !== "local" && <span>{process.backend}</span>}
      <Copyable text={process.id}>
        <code>{process.id}</code>
      </Copyable>
    </>
  );
}

/** Of a failure why it failed; of a question the answer's field. */
function Why({ process }: { process: Process }) {
  const [why, setWhy] = useState<{ summary: string; next: string[] } | null>(null);
  const state = stateOf(process).name;
  const readOnly = useReadOnly();
  const isFailure = state === "failed" || state === "lost" || state === "stalled";
  useEffect(() => {
    setWhy(null);
    if (isFailure) explain(process.id).then(setWhy, () => undefined);
  }, [process.id, isFailure, process.ended_at]);
  const asked = process.needs_input as { prompt?: string; secret?: boolean } | null;
  if (asked && !process.pty && !readOnly)
    return (
      <div className="why why-asks">
        <q>{oneLine(asked.prompt ?? "")}</q>
        <SendForm process={process} isSecret={asked.secret ?? false} />
      </div>
    );
  if (why === null) return null;
  return (
    <div className={`why why-${state}`}>
      <span>{oneLine(why.summary)}</span>
      {why.next.slice(0, 2).map((next) => (
        <Copyable key={next} text={next} what="the command">
          <code>{next}</code>
        </Copyable>
      ))}
    </div>
  );
}
