import { useEffect, useRef, useState } from "react";
import { glance, readDetails } from "../../api/operations";
import type { Process, Tree } from "../../api/types";
import { theme } from "../../app/theme";
import { useStore } from "../../feed/store";
import { Empty } from "../../components/basics";
import { duration, percent, size } from "../../model/format";
import type { Chart } from "./chart";

const INTERVAL = 2000;
const MOST = 300;

interface Samples {
  times: number[];
  cpu: (number | null)[];
  memory: (number | null)[];
}

export function ResourcesTab({ process }: { process: Process }) {
  const samples = useSamples(process);
  const [tree, setTree] = useState<Tree[]>([]);
  const shown = useStore(theme);
  useEffect(() => {
    if (process.status === "ended") return;
    const read = () => void readDetails(process.id).then((details) => setTree(details.tree ?? [])).catch(() => undefined);
    read();
    const timer = setInterval(read, 2 * INTERVAL);
    return () => clearInterval(timer);
  }, [process.id, process.status]);
  const lastCpu = samples.cpu.at(-1);
  return (
    <div className="resources">
      <dl className="figures">
        <Figure label="CPU now" value={lastCpu === null || lastCpu === undefined ? "–" : percent(lastCpu)} />
        <Figure label="CPU time" value={process.cpu_seconds === null ? "–" : duration(process.cpu_seconds)} />
        <Figure label="Memory" value={process.rss_bytes === null ? "–" : size(process.rss_bytes)} />
        <Figure label="Highest memory" value={process.peak_rss_bytes ? size(process.peak_rss_bytes) : "–"} />
        <Figure label="Output" value={size(process.output_bytes)} />
        <Figure label="Ports" value={process.ports?.length ? process.ports.map((port) => `:${port}`).join(" ") : "–"} />
      </dl>
      {process.status === "ended" ? (
        <Empty title="It has ended: nothing is measured any more" />
      ) : (
        <>
          <Plot key={`cpu ${shown}`} title="CPU" times={samples.times} values={samples.cpu} format={percent} />
          <Plot key={`memory ${shown}`} title="Memory" times={samples.times} values={samples.memory} format={size} />
          {tree.length > 0 && <TreeTable tree={tree} />}
        </>
      )}
    </div>
  );
}

function Figure({ label, value }: { label: string; value: string }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd className="number">{value}</dd>
    </div>
  );
}

function useSamples(process: Process): Samples {
  const [samples, setSamples] = useState<Samples>({ times: [], cpu: [], memory: [] });
  const isLive = process.status !== "ended";
  useEffect(() => {
    if (!isLive) return;
    let isGone = false;
    const begin = async () => {
      const history = (await glance([process.id], 60)).processes[0]?.history;
      const now = Date.now() / 1000;
      if (history?.ago && !isGone)
        setSamples({
          times: history.ago.map((ago) => now - ago),
          cpu: history.cpu_percent ?? [],
          memory: history.rss_bytes ?? [],
        });
    };
    const read = async () => {
      if (document.hidden) return;
      const found = (await glance([process.id], 0)).processes[0];
      const at = Date.now() / 1000;
      if (isGone || !found) return;
      const cpu = found.cpu_percent;
      setSamples((now) => ({
        times: [...now.times, at].slice(-MOST),
        cpu: [...now.cpu, cpu].slice(-MOST),
        memory: [...now.memory, found.rss_bytes].slice(-MOST),
      }));
    };
    void begin().catch(() => undefined);
    const timer = setInterval(() => void read().catch(() => undefined), INTERVAL);
    return () => {
      isGone = true;
      clearInterval(timer);
    };
  }, [process.id, isLive]);
  return samples;
}

interface PlotProps {
  title: string;
  times: number[];
  values: (number | null)[];
  format(value: number): string;
}

function Plot({ title, times, values, format }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | null>(null);
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    let isGone = false;
    void import("./chart").then(({ createChart }) => {
      if (isGone || !place.current) return;
      chart.current = createChart(place.current, title, format);
      setReady(true);
    });
    return () => {
      isGone = true;
      chart.current?.dispose();
      chart.current = null;
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);
  useEffect(() => chart.current?.set(times, values), [times, values, isReady]);
  const last = values.at(-1);
  return (
    <section className="plot" aria-label={`${title}${last ? `, now ${format(last)}` : ""}`}>
      <h2>{title}</h2>
      <div ref={place} aria-hidden="true" />
    </section>
  );
}

function TreeTable({ tree }: { tree: Tree[] }) {
  const depthOf = (entry: Tree): number => {
    let depth = 0;
    let parent = tree.find((one) => one.pid === entry.ppid);
    while (parent && depth < 20) {
      depth += 1;
      const next: Tree = parent;
      parent = tree.find((one) => one.pid === next.ppid);
    }
    return depth;
  };
  return (
    <section>
      <h2>Its processes</h2>
      <table className="plain-table">
        <thead>
          <tr>
            <th scope="col">Program</th>
            <th scope="col" className="number">Pid</th>
            <th scope="col" className="number">CPU time</th>
            <th scope="col" className="number">Memory</th>
          </tr>
        </thead>
        <tbody>
          {tree.map((entry) => (
            <tr key={entry.pid}>
              <td style={{ paddingLeft: 8 + depthOf(entry) * 16 }}>
                <code>{entry.name}</code>
              </td>
              <td className="number">{entry.pid}</td>
              <td className="number">{entry.cpu_seconds === null ? "" : `${entry.cpu_seconds.toFixed(1)} s`}</td>
              <td className="number">{entry.rss_bytes === null ? "" : size(entry.rss_bytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
