import { useState, type ReactNode } from "react";
import {
  daemon,
  deadLetters,
  doctor,
  newLink,
  retryDead,
  settings,
  sinks as readSinks,
  testSink,
  type Setting,
} from "../../api/operations";
import type { Sink } from "../../api/types";
import { signOut } from "../../api/session";
import { useReadOnly, useSession } from "../../app/session_context";
import { copy, say, sayError } from "../../app/toasts";
import { Ago, Copyable, Failure, Loading } from "../../components/basics";
import { StateIcon } from "../../components/Icon";
import { useRead } from "../../components/useRead";
import { count, duration, oneLine, size } from "../../model/format";
import { PluginSettings } from "../../plugins/PluginSettings";
import { ThemeSettings } from "../../themes/ThemeSettings";

export function SettingsPage(_: { rest: string[] }) {
  return (
    <>
      <div className="page-head">
        <h1>Settings</h1>
      </div>
      <div className="settings">
        <Section title="Theme">
          <ThemeSettings />
        </Section>
        <Section title="Plugins">
          <PluginSettings />
        </Section>
        <Instance />
        <Retention />
        <Sinks />
        <Checks />
      </div>
    </>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="card">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

async function copyLink(readOnly: boolean): Promise<void> {
  try {
    await copy((await newLink(readOnly)).link, "the link; it works once, within ten minutes");
  } catch (error) {
    sayError(error);
  }
}

function Instance() {
  const session = useSession();
  const { value } = useRead(daemon, 0, 5000);
  return (
    <Section title="This instance">
      {value && (
        <>
          <Line label="Home"><Copyable text={value.home} what="the directory" /></Line>
          <Line label="Version">{value.version}</Line>
          <Line label="Daemon">pid {value.pid}, started <Ago time={value.started_at} /></Line>
          <Line label="Processes">{count(value.held)} held, {count(value.ended)} ended</Line>
        </>
      )}
      {session?.user && <Line label="You">{session.user}{session.host ? ` on ${session.host}` : ""}{session.read_only ? ", may only look" : ""}</Line>}
      <div className="card-actions">
        {!session?.read_only && (
          <>
            <button onClick={() => void copyLink(false)}>Copy a link for another browser</button>
            <button onClick={() => void copyLink(true)}>… that may only look</button>
          </>
        )}
        <button onClick={() => void signOut()}>Sign out of this browser</button>
      </div>
    </Section>
  );
}

/** Changed in the configuration file: a page that could change it would be a second place to look. */
function Retention() {
  const { value } = useRead(daemon, 0, 5000);
  const config = useRead(settings);
  return (
    <Section title="What is kept">
      {value && (
        <>
          <Line label="Output">
            {size(value.log_bytes ?? 0)}
            {value.log_total ? ` of ${size(value.log_total)}` : ", no limit"}
          </Line>
          {value.log_total !== null && value.log_total > 0 && (
            <progress max={value.log_total} value={value.log_bytes ?? 0} aria-label="Output that is kept" />
          )}
          <Line label="Events">{count(value.events)}</Line>
        </>
      )}
      {config.value && (
        <>
          {config.value.settings
            .filter((setting) => KEPT.includes(setting.key))
            .map((setting) => (
              <Line key={setting.key} label={setting.key}>
                <Copyable text={`holdfast config set ${setting.key} `} what="the command that changes it">
                  <span title={setting.about}>{shown(setting)}</span>
                </Copyable>
                <span className="muted setting-about">{setting.about}</span>
              </Line>
            ))}
          <p className="muted">
            They are in <Copyable text={config.value.config} what="the path" />; click a value to copy the command that changes it.
          </p>
        </>
      )}
    </Section>
  );
}

/** Settings that say what is kept, and for how long. */
const KEPT = ["log_cap", "log_total", "keep_ended", "max_ended", "keep_events", "max_events", "keep_notices"];

function shown({ kind, value }: Setting): string {
  const number = Number(value);
  if (kind === "size") return number ? size(number) : "no limit";
  if (kind === "seconds") return number ? duration(number) : "no limit";
  return kind === "number" ? count(number) : value;
}

function Sinks() {
  const { value, error, again } = useRead(readSinks, 0, 10_000);
  const dead = useRead(deadLetters, 0, 10_000);
  const readOnly = useReadOnly();
  if (error) return <Section title="Sinks"><Failure text={error} retry={again} /></Section>;
  if (value === null) return <Section title="Sinks"><Loading what="sinks" /></Section>;
  const retry = async (ids: number[]) => {
    try {
      const done = await retryDead(ids);
      say(`${done.retried.length} will be sent again`);
      dead.again();
    } catch (failed) {
      sayError(failed);
    }
  };
  return (
    <Section title="Sinks: where notifications go beside the inbox">
      {value.trouble && <Failure text={value.trouble} />}
      {!value.sinks.length && (
        <p className="muted">
          None. Add a <code>[[sinks]]</code> table to <Copyable text={value.config} what="the path" />: a chat, a phone, a webhook or the desktop.
        </p>
      )}
      <ul className="sinks">
        {value.sinks.map((sink) => (
          <SinkRow key={sink.name} sink={sink} readOnly={readOnly} />
        ))}
      </ul>
      {dead.value && dead.value.dead.length > 0 && (
        <>
          <h3>Given up</h3>
          <ul className="sinks">
            {dead.value.dead.map((letter) => (
              <li key={letter.id}>
                <span>{letter.sink}</span>
                <span className="muted">{oneLine(letter.error ?? "")}</span>
                {!readOnly && <button onClick={() => void retry([letter.id])}>Send again</button>}
              </li>
            ))}
          </ul>
        </>
      )}
    </Section>
  );
}

const SINK_ICONS = { ok: "succeeded", quiet: "waiting", failing: "failed", off: "killed", gone: "lost" } as const;

function SinkRow({ sink, readOnly }: { sink: Sink; readOnly: boolean }) {
  const [isBusy, setBusy] = useState(false);
  const [result, setResult] = useState<string | null>(null);
  const test = async () => {
    setBusy(true);
    setResult(null);
    try {
      const [done] = (await testSink(sink.name)).results;
      setResult(done?.sent ? `sent in ${done.took.toFixed(1)} s` : `not sent: ${done?.error ?? "no answer"}`);
    } catch (failed) {
      sayError(failed);
    } finally {
      setBusy(false);
    }
  };
  const icon = SINK_ICONS[sink.state];
  return (
    <li>
      <span className={`state state-${icon}`}>
        <StateIcon name={icon} />
        <span>{sink.state}</span>
      </span>
      <strong>{sink.name}</strong>
      <span className="muted">{oneLine(sink.to ?? "")}</span>
      <span className="muted">
        {count(sink.sent)} sent{sink.pending ? `, ${sink.pending} pending` : ""}
        {sink.last_error ? `, last error: ${oneLine(sink.last_error)}` : ""}
      </span>
      {result && <span role="status">{result}</span>}
      {!readOnly && (
        <button disabled={isBusy} onClick={() => void test()}>
          {isBusy ? "Sending …" : "Test"}
        </button>
      )}
    </li>
  );
}

function Checks() {
  const { value } = useRead(doctor);
  if (value === null) return <Section title="Checks of this machine"><Loading what="checks" /></Section>;
  return (
    <Section title="Checks of this machine">
      <ul className="checks">
        {value.checks.map((check) => (
          <li key={check.name}>
            <span className={`state ${check.ok ? "state-succeeded" : "state-stalled"}`}>
              <StateIcon name={check.ok ? "succeeded" : "stalled"} />
              <span>{check.name}</span>
            </span>
            <span className="muted">
              {oneLine(check.detail)}
              {!check.ok && check.degrades ? `: ${check.degrades}` : ""}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Line({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div className="detail">
      <span className="muted">{label}</span>
      <span>{children}</span>
    </div>
  );
}
