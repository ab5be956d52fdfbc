import { useEffect, useMemo, useRef, useState } from "react";
import { controlAgent, setAgentModel, startAgent } from "../../api/operations";
import type { Agent, Approval } from "../../api/types";
import { useKeys } from "../../app/keys";
import { useReadOnly } from "../../app/session_context";
import { say, sayError } from "../../app/toasts";
import { ApprovalButtons } from "../../components/ApprovalButtons";
import { Failure, Link, Loading } from "../../components/basics";
import { askText } from "../../components/confirm";
import { Icon } from "../../components/Icon";
import { markShown, pendingApprovals } from "../../feed/approvals";
import { closeChat, openChat, readListSoon, type ChatFeed, type Conversation } from "../../feed/chat";
import { useStore } from "../../feed/store";
import { oneLine, plural } from "../../model/format";
import { AgentState } from "./ChatPage";
import { itemsOf, modelOf } from "./items";
import { MessageBox } from "./MessageBox";
import { Transcript } from "./Transcript";

interface PaneProps {
  session: string;
  /** What is known of it; undefined before its first message. */
  agent: Agent | undefined;
  configuredModel: string | null;
}

export function ConversationPane(props: PaneProps) {
  const [chat, setChat] = useState<ChatFeed | null>(null);
  const { session } = props;
  useEffect(() => {
    const opened = openChat(session);
    setChat(opened);
    return () => closeChat(opened);
  }, [session]);
  return chat && <Shown {...props} chat={chat} />;
}

function Shown({ session, agent, configuredModel, chat }: PaneProps & { chat: ChatFeed }) {
  const talk = useStore(chat.state);
  const readOnly = useReadOnly();
  const items = useMemo(() => itemsOf(talk.entries ?? []), [talk.entries]);
  const model = modelOf(talk.entries ?? []) || agent?.model || configuredModel || "";
  const isWorking = agent?.state === "working" || talk.drafts.length > 0;
  const isStuck = agent?.state === "not_running" && agent.why !== "" && agent.last_kind !== "end" && agent.last_kind !== "error";
  const approvals = useStore(pendingApprovals).filter((one) => one.session === session);

  const act = async (work: Promise<unknown>, done: string) => {
    try {
      await work;
      say(done);
      readListSoon(0);
    } catch (failed) {
      sayError(failed);
    }
  };
  const interrupt = () => void act(controlAgent(session, "interrupt"), "Asked to stop; background processes go on");
  const changeModel = async () => {
    const chosen = await askText({
      title: "Model",
      text: "The agent of this session uses it from its next step on.",
      action: "Use it",
      field: { label: "Model", value: model },
    });
    if (chosen !== null && chosen !== model) await act(setAgentModel(session, chosen), `Model: ${chosen}`);
  };
  useKeys("Chat", [
    { key: "i", does: "write to the agent", run: () => document.getElementById("chat-message")?.focus() },
    { key: "x", does: "interrupt the agent", run: () => isWorking && !readOnly && interrupt() },
  ]);

  return (
    <section className="chat-pane" aria-label={`Conversation ${session}`}>
      <div className="chat-head">
        <Link to="/chat" className="back phone-only" title="All conversations">
          <Icon name="back" />
          <span className="hidden-text">All conversations</span>
        </Link>
        <h2>{oneLine(session)}</h2>
        {agent && <AgentState agent={agent} />}
        {agent?.why && <span className="muted chat-why">{oneLine(agent.why)}</span>}
        <span className="pane-actions">
          {model &&
            (readOnly ? (
              <span className="muted">{model}</span>
            ) : (
              <button className="quiet chat-model" title="Choose another model" onClick={() => void changeModel()}>
                {oneLine(model)}
              </button>
            ))}
          <Link className="button" to={`/processes?filter=${encodeURIComponent(session)}`}>
            {agent?.running ? plural(agent.running, "process", "processes") : "Processes"}
          </Link>
        </span>
      </div>
      {talk.error && <Failure text={talk.error} retry={() => chat.read()} />}
      {talk.entries === null && !talk.error ? (
        <Loading what="the conversation" />
      ) : (
        <Transcript chat={chat} talk={talk} items={items} />
      )}
      <Announcer talk={talk} />
      {isStuck && !readOnly && (
        <div className="failure" role="alert">
          <span>The agent of this session ended while it worked.</span>
          <button onClick={() => void act(startAgent(session), "The agent goes on")}>Go on</button>
        </div>
      )}
      {approvals.length > 0 && <Approvals approvals={approvals} />}
      {readOnly ? (
        <p className="muted chat-read-only">This link can only look. A page that can write: holdfast dashboard</p>
      ) : (
        <MessageBox chat={chat} isWorking={isWorking} onInterrupt={interrupt} hasModel={model !== ""} />
      )}
    </section>
  );
}

function Approvals({ approvals }: { approvals: Approval[] }) {
  const readOnly = useReadOnly();
  const key = approvals.map((one) => one.id).join(" ");
  useEffect(() => {
    const show = () => markShown(approvals);
    show();
    document.addEventListener("visibilitychange", show);
    return () => document.removeEventListener("visibilitychange", show);
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [key]);
  return (
    <ul className="chat-approvals" aria-label="To approve">
      {approvals.map((approval) => (
        <li key={approval.id}>
          <span className="state state-asks">
            <Icon name="approval" />
            <span>{approval.action === "sudo" ? "sudo" : "approve"}</span>
          </span>
          <span className="need-what">
            <code>{oneLine(approval.command)}</code>
            <span className="muted">{approval.why}</span>
          </span>
          {!readOnly && <ApprovalButtons approval={approval} />}
        </li>
      ))}
    </ul>
  );
}

const SPOKEN = 400;

/** Says what is new to screen readers, when it is complete; the list itself is silent while it is scrolled. */
function Announcer({ talk }: { talk: Conversation }) {
  const said = useRef<number | null>(null);
  const [texts, setTexts] = useState<{ id: number; text: string }[]>([]);
  useEffect(() => {
    if (talk.entries === null) return;
    said.current ??= talk.openedAt;
    const fresh = talk.entries.filter((entry) => entry.id > said.current!);
    said.current = talk.entries.at(-1)?.id ?? said.current;
    const spoken = fresh.flatMap(({ id, kind, content }) => {
      const text = typeof content.text === "string" ? content.text.slice(0, SPOKEN) : "";
      if (kind === "assistant" && text) return [{ id, text: `Agent: ${text}` }];
      if (kind === "notice") return [{ id, text: `System: ${text.split("\n", 1)[0] ?? ""}` }];
      if (kind === "error") return [{ id, text: `Error: ${String(content.message)}` }];
      return [];
    });
    if (spoken.length) setTexts((now) => [...now, ...spoken].slice(-5));
  }, [talk.entries, talk.openedAt]);
  return (
    <div className="hidden-text" aria-live="polite" data-testid="announcer">
      {texts.map(({ id, text }) => (
        <p key={id}>{text}</p>
      ))}
    </div>
  );
}
