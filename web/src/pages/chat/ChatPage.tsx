import { useEffect, useState } from "react";
import type { Agent } from "../../api/types";
import { useKeys } from "../../app/keys";
import { chatPath, navigate, setQuery, usePlace } from "../../app/router";
import { useReadOnly } from "../../app/session_context";
import { Ago, Copyable, Empty, Failure, Link, Loading } from "../../components/basics";
import { askText } from "../../components/confirm";
import { Icon, StateIcon } from "../../components/Icon";
import { useIsPhone } from "../../components/useIsPhone";
import { useRootClass } from "../../components/useRootClass";
import { agentList, agentListError, followAgents, readListSoon } from "../../feed/chat";
import { useStore } from "../../feed/store";
import { oneLine, plural } from "../../model/format";
import type { StateName } from "../../model/state";
import "../../styles/chat-list.css";
import "../../styles/chat.css";
import { ConversationPane } from "./ConversationPane";

const STATES: Record<Agent["state"], { icon: StateName; look: StateName; word: string }> = {
  working: { icon: "running", look: "running", word: "working" },
  waiting: { icon: "asks", look: "asks", word: "waiting for you" },
  idle: { icon: "succeeded", look: "succeeded", word: "idle" },
  not_running: { icon: "killed", look: "killed", word: "not running" },
};

export function AgentState({ agent }: { agent: Agent }) {
  const state = STATES[agent.state];
  return (
    <span className={`state state-${state.look}`}>
      <StateIcon name={state.icon} />
      <span>{state.word}</span>
    </span>
  );
}

/** A new name, such as those of the command line. */
function newName(): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const now = new Date();
  const random = [...crypto.getRandomValues(new Uint8Array(2))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `chat-${two(now.getMonth() + 1)}${two(now.getDate())}-${two(now.getHours())}${two(now.getMinutes())}-${random}`;
}

async function beginSession(): Promise<void> {
  const name = await askText({
    title: "New session",
    text: "A session has its own conversation, its own processes, and gets their notifications. Its agent starts with your first message.",
    action: "Begin",
    field: { label: "Name", value: newName() },
  });
  if (name !== null) navigate(chatPath(name));
}

export function ChatPage({ rest }: { rest: string[] }) {
  const session = rest[0];
  const list = useStore(agentList);
  const error = useStore(agentListError);
  const isPhone = useIsPhone();
  const readOnly = useReadOnly();
  useEffect(() => followAgents(), []);

  const agents = list?.agents ?? [];
  const step = (by: number) => {
    const at = agents.findIndex((agent) => agent.session === session);
    const next = agents[Math.min(agents.length - 1, Math.max(0, at + by))];
    if (next) navigate(chatPath(next.session));
  };
  useKeys("Chat", [
    { key: "j", does: "next session", run: () => step(1) },
    { key: "k", does: "previous session", run: () => step(-1) },
    { key: "n", does: "new session", run: () => !readOnly && void beginSession() },
  ]);
  // Beside the list there is always a conversation; the one that was used last.
  const first = agents[0]?.session;
  const isNew = usePlace().query.has("new");
  useEffect(() => {
    if (isNew) {
      setQuery({ new: null });
      if (!readOnly) void beginSession();
    } else if (!session && first !== undefined && !isPhone) navigate(chatPath(first), true);
  }, [session, first, isPhone, isNew, readOnly]);

  const isShown = list !== null && (session !== undefined || agents.length > 0);
  useRootClass("has-chat", isShown);
  if (list === null) return error ? <Failure text={error} retry={() => readListSoon(0)} /> : <Loading what="conversations" />;
  if (!session && !agents.length) return <NoAgent isConfigured={list.model !== null} />;
  const agent = agents.find((one) => one.session === session);
  return (
    <div className={`chat-page ${session ? "has-session" : ""}`}>
      {(!isPhone || !session) && (
        <nav className="chat-list" aria-label="Conversations">
          <div className="pane-head">
            <h1>Chat</h1>
            {!readOnly && (
              <span className="pane-actions">
                <button onClick={() => void beginSession()}>
                  <Icon name="plus" /> New
                </button>
              </span>
            )}
          </div>
          <ul>
            {session && !agent && <li><ChatLink name={session} current /></li>}
            {agents.map((one) => (
              <li key={one.session}>
                <ChatLink name={one.session} agent={one} current={one.session === session} />
              </li>
            ))}
          </ul>
        </nav>
      )}
      {session && (
        <ConversationPane key={session} session={session} agent={agent} configuredModel={list.model} />
      )}
    </div>
  );
}

function ChatLink({ name, agent, current }: { name: string; agent?: Agent; current: boolean }) {
  return (
    <Link to={chatPath(name)} className="chat-link" current={current}>
      <span className="chat-link-name">{oneLine(name)}</span>
      {agent ? (
        <>
          <span className="chat-link-time muted"><Ago time={agent.changed_at} /></span>
          <span className="chat-link-state">
            <AgentState agent={agent} />
            <span className="muted">{[agent.why, agent.running ? `${plural(agent.running, "process", "processes")}` : ""].filter(Boolean).map(oneLine).join(" · ")}</span>
          </span>
          <span className="chat-link-text muted">{oneLine(agent.last_text.replace(/[`*#]+/g, ""))}</span>
        </>
      ) : (
        <span className="chat-link-state muted">new</span>
      )}
    </Link>
  );
}

function NoAgent({ isConfigured }: { isConfigured: boolean }) {
  const readOnly = useReadOnly();
  const [command] = useState("holdfast agent --setup");
  if (!isConfigured)
    return (
      <Empty title="No agent is configured">
        Choose an endpoint and a model on the machine of the daemon: <Copyable text={command} what="the command"><code>{command}</code></Copyable>
        <p className="chat-begin">
          {!readOnly && <button onClick={() => void beginSession()}>Begin a session all the same …</button>}
        </p>
      </Empty>
    );
  return (
    <Empty title="No conversation yet">
      An agent works with a model, on files and with commands, and is notified of its own processes.
      <p className="chat-begin">
        {!readOnly && (
          <button className="primary" onClick={() => void beginSession()}>
            New session …
          </button>
        )}
      </p>
    </Empty>
  );
}
