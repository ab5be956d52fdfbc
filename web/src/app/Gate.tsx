/** Signs in, then shows the page; or says how to get a link. */
import { startTransition, useEffect, useState, type FormEvent } from "react";
import { Problem, sentenceOf } from "../api/problem";
import { hasPassword, login, signIn, type DashboardSession } from "../api/session";
import { startApprovals } from "../feed/approvals";
import { startFeed } from "../feed/processes";
import { Copyable, Failure, Loading } from "../components/basics";
import { App } from "./App";
import { findPage } from "./pages";
import { Toasts } from "./toasts";

const ignore = () => undefined;
const first = findPage(location.pathname);

/** Before anything is drawn: the session is asked for while the script of the page is loaded. */
let started: Promise<DashboardSession> | null = begin();
started.catch(ignore);
first?.entry.load?.().catch(ignore);

function begin(): Promise<DashboardSession> {
  return signIn().then((session) => {
    first?.entry.prepare?.(first.rest).catch(ignore);
    startFeed();
    void import("../plugins/load").then(({ loadPlugins }) => loadPlugins());
    if (!session.read_only) startApprovals();
    return session;
  });
}

export function Gate() {
  const [session, setSession] = useState<DashboardSession | null>(null);
  const [error, setError] = useState<unknown>(null);
  const attempt = () => {
    setError(null);
    started ??= begin();
    // In slices: the first drawing of the whole page is the longest.
    started.then((found) => startTransition(() => setSession(found)), (failed: unknown) => {
      started = null;
      setError(failed);
    });
  };
  useEffect(attempt, []);
  if (session !== null) return <App session={session} />;
  if (error instanceof Problem && error.status === 401) return <NoLink retry={attempt} />;
  return (
    <main className="gate">
      {error === null ? <Loading what="your session" /> : <Failure text={sentenceOf(error)} retry={attempt} />}
    </main>
  );
}

function NoLink({ retry }: { retry(): void }) {
  const [takesPassword, setTakesPassword] = useState(false);
  useEffect(() => void hasPassword().then(setTakesPassword, () => undefined), []);
  return (
    <main className="gate">
      <h1>holdfast</h1>
      {takesPassword && <PasswordForm onDone={retry} />}
      <p>
        {takesPassword
          ? "Or open a link. Links work once, for ten minutes."
          : "This browser has no session, or its session is over. Links work once, for ten minutes."}
      </p>
      <p>Open a new one from a terminal:</p>
      <Copyable text="holdfast dashboard" what="the command">
        <code>holdfast dashboard</code>
      </Copyable>
      <Toasts />
    </main>
  );
}

function PasswordForm({ onDone }: { onDone(): void }) {
  const [password, setPassword] = useState("");
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      await login({ password });
      onDone();
    } catch (failed) {
      setError(sentenceOf(failed));
      setPassword("");
    } finally {
      setBusy(false);
    }
  };
  return (
    <form className="gate-form" onSubmit={(event) => void submit(event)}>
      <label htmlFor="password">Password</label>
      <input
        id="password"
        type="password"
        autoComplete="current-password"
        autoFocus
        required
        maxLength={256}
        value={password}
        aria-describedby={error ? "password-error" : undefined}
        onChange={(event) => setPassword(event.target.value)}
      />
      <button className="primary" disabled={isBusy}>
        Log in
      </button>
      {error && (
        <p id="password-error" className="gate-error" role="alert">
          {error}
        </p>
      )}
    </form>
  );
}
