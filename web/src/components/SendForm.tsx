import { useState } from "react";
import { send } from "../api/operations";
import type { Process } from "../api/types";
import { touch } from "../feed/processes";
import { sayError } from "../app/toasts";

interface SendFormProps {
  process: Process;
  isSecret: boolean;
  onDone?(): void;
}

/** Types one line into a process. */
export function SendForm({ process, isSecret, onDone }: SendFormProps) {
  const [text, setText] = useState("");
  const submit = async () => {
    try {
      await send(process.id, text, isSecret);
      setText("");
      touch(process.id);
      onDone?.();
    } catch (error) {
      sayError(error);
    }
  };
  return (
    <form
      className="send-form"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <input
        autoFocus={onDone !== undefined}
        type={isSecret ? "password" : "text"}
        autoComplete="off"
        spellCheck={false}
        aria-label={isSecret ? "Secret to type" : "Line to type"}
        placeholder={isSecret ? "Typed without echo" : "Type a line, then enter"}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => event.key === "Escape" && onDone?.()}
      />
      <button className="primary">Send</button>
    </form>
  );
}
