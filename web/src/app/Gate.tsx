/** Signs in, then shows the page; or says how to get a link. */
import { useEffect, useState } from "react";
import { Problem, sentenceOf } from "../api/problem";
import { signIn, type DashboardSession } from "../api/session";
import { startApprovals } from "../feed/approvals";
import { startFeed } from "../feed/processes";
import { Copyable, Failure, Loading } from "../components/basics";
import { App } from "./App";
import { Toasts } from "./toasts";

let started: Promise<DashboardSession> | null = null;

function begin(): Promise<DashboardSession> {
  return signIn().then((session) => {
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
    started.then(setSession, (failed: unknown) => {
      started = null;
      setError(failed);
    });
  };
  useEffect(attempt, []);
  if (session !== null) return <App session={session} />;
  if (error instanceof Problem && error.status === 401) return <NoLink />;
  return (
    <main className="gate">
      {error === null ? <Loading what="your session" /> : <Failure text={sentenceOf(error)} retry={attempt} />}
    </main>
  );
}

function NoLink() {
  return (
    <main className="gate">
      <h1>holdfast</h1>
      <p>This browser has no session, or its session is over. Links work once, for ten minutes.</p>
      <p>Open a new one from a terminal:</p>
      <Copyable text="holdfast dashboard" what="the command">
        <code>holdfast dashboard</code>
      </Copyable>
      <Toasts />
    </main>
  );
}
