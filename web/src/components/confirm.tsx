/** One question before something that cannot be undone; for many at once, their number has to be typed. */
import { useState } from "react";
import { Store, useStore } from "../feed/store";
import { Dialog } from "./basics";

interface Question {
  title: string;
  text: string;
  action: string;
  /** A text that has to be typed first. */
  typed?: string;
  /** Asks for a text; the answer is that text. */
  field?: { label: string; value: string; suggestions?: string[] };
}

interface Asked extends Question {
  answer(text: string | null): void;
}

const asked = new Store<Asked | null>(null);

function ask(question: Question): Promise<string | null> {
  return new Promise((resolve) => {
    asked.get()?.answer(null);
    asked.set({
      ...question,
      answer: (text) => {
        asked.set(null);
        resolve(text);
      },
    });
  });
}

export const confirm = async (question: Question) => (await ask(question)) !== null;
/** The text that was typed, or null. */
export const askText = (question: Question & { field: NonNullable<Question["field"]> }) => ask(question);

export function ConfirmHost() {
  const question = useStore(asked);
  return question && <Confirm key={question.title} question={question} />;
}

function Confirm({ question }: { question: Asked }) {
  const [text, setText] = useState(question.field?.value ?? "");
  const isReady = question.typed ? text.trim() === question.typed : question.field ? text.trim() !== "" : true;
  const close = () => question.answer(null);
  return (
    <Dialog title={question.title} onClose={close} className="confirm">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) question.answer(text.trim());
        }}
      >
        <h2>{question.title}</h2>
        <p>{question.text}</p>
        {(question.typed || question.field) && (
          <label>
            {question.field?.label ?? `Type ${question.typed} to go on`}
            <input
              autoFocus
              value={text}
              list={question.field?.suggestions ? "suggestions" : undefined}
              autoComplete="off"
              onChange={(event) => setText(event.target.value)}
            />
            <datalist id="suggestions">
              {question.field?.suggestions?.map((value) => <option key={value} value={value} />)}
            </datalist>
          </label>
        )}
        <div className="dialog-actions">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button className={question.field ? "primary" : "danger filled"} disabled={!isReady} autoFocus={!question.typed && !question.field}>
            {question.action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
