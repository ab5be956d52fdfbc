import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { useRootClass } from "../../components/useRootClass";
import type { ChatFeed } from "../../feed/chat";
import { useStore } from "../../feed/store";

const HIGHEST = 200;
const keyOf = (session: string) => `holdfast-draft ${session}`;

interface BoxProps {
  chat: ChatFeed;
  isWorking: boolean;
  hasModel: boolean;
  onInterrupt(): void;
}

/** Enter sends, shift and enter begin a new line. What is not sent yet survives a reload. */
export function MessageBox({ chat, isWorking, hasModel, onInterrupt }: BoxProps) {
  const key = keyOf(chat.session);
  const [text, setText] = useState(() => sessionStorage.getItem(key) ?? "");
  const box = useRef<HTMLTextAreaElement>(null);
  const { outgoing } = useStore(chat.state);
  const refused = outgoing.filter((one) => one.error !== null);
  useEffect(() => {
    if (text) sessionStorage.setItem(key, text);
    else sessionStorage.removeItem(key);
  }, [key, text]);
  useLayoutEffect(() => {
    const shown = box.current;
    if (!shown) return;
    shown.style.height = "auto";
    shown.style.height = `${Math.min(HIGHEST, shown.scrollHeight + 2)}px`;
  }, [text]);

  useRootClass("has-chat-form");

  const send = () => {
    if (!text.trim()) return;
    chat.send(text);
    setText("");
  };
  return (
    <>
      {refused.map((one) => (
        <div key={one.id} className="failure" role="alert">
          <span>
            Not sent: “{one.text.slice(0, 60)}”. {one.error}
          </span>
          <button onClick={() => chat.sendAgain(one.id)}>Send again</button>
          <button onClick={() => setText(chat.withdraw(one.id) + (text ? `\n${text}` : ""))}>Edit</button>
        </div>
      ))}
      <form
        className="chat-form"
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <textarea
          ref={box}
          id="chat-message"
          rows={1}
          aria-label="Message to the agent"
          placeholder={hasModel ? "Write to the agent" : "No model is configured. On the machine of the daemon: holdfast agent --setup"}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
              event.preventDefault();
              send();
            } else if (event.key === "Escape") {
              box.current?.blur();
            }
          }}
        />
        {isWorking && (
          <button type="button" onClick={onInterrupt} title="End what the agent does now; background processes go on">
            Interrupt
          </button>
        )}
        <button className="primary" disabled={!text.trim()}>
          Send
        </button>
      </form>
    </>
  );
}
