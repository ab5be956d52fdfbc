import { Store, useStore } from "../feed/store";
import { sentenceOf } from "../api/problem";

interface Toast {
  id: number;
  text: string;
  isError: boolean;
}

const SHOWN_FOR = 5000;
const toasts = new Store<readonly Toast[]>([]);
let last = 0;

export function say(text: string, isError = false): void {
  const id = ++last;
  toasts.set([...toasts.get().slice(-2), { id, text, isError }]);
  if (!isError) setTimeout(() => dismiss(id), SHOWN_FOR);
}

export const sayError = (error: unknown) => say(sentenceOf(error), true);

function dismiss(id: number): void {
  toasts.set(toasts.get().filter((toast) => toast.id !== id));
}

export function Toasts() {
  return (
    <div className="toasts" role="status" aria-live="polite">
      {useStore(toasts).map((toast) => (
        <div key={toast.id} className={toast.isError ? "toast toast-error" : "toast"}>
          <span>{toast.text}</span>
          <button className="quiet" onClick={() => dismiss(toast.id)} aria-label="Dismiss">
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(`Copied ${what}`);
  } catch {
    say(`The browser does not allow copying. ${text}`, true);
  }
}
