import { useState } from "react";
import { start, type StartRequest } from "../../api/operations";
import { sentenceOf } from "../../api/problem";
import { navigate, processPath } from "../../app/router";
import { Dialog, Failure } from "../../components/basics";
import { processes, put } from "../../feed/processes";

export function StartForm({ onClose }: { onClose(): void }) {
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const sessions = [...new Set([...processes.get().all.values()].map((process) => process.session))].slice(0, 50);
  const submit = async (form: FormData) => {
    const body: StartRequest = { command: String(form.get("command")), pty: form.get("pty") === "on" };
    for (const field of ["name", "session", "cwd", "task"] as const) {
      const value = String(form.get(field) ?? "").trim();
      if (value) body[field] = value;
    }
    const restart = String(form.get("restart"));
    if (restart !== "never") body.restart = restart;
    setBusy(true);
    setError(null);
    try {
      const process = await start(body);
      put(process);
      onClose();
      navigate(processPath(process.id, body.pty ? "terminal" : ""));
    } catch (failed) {
      setError(sentenceOf(failed));
      setBusy(false);
    }
  };
  return (
    <Dialog title="Start a process" onClose={onClose} className="start">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit(new FormData(event.currentTarget));
        }}
      >
        <h2>Start a process</h2>
        <label>
          Command, for the shell
          <textarea
            name="command"
            rows={2}
            required
            autoFocus
            spellCheck={false}
            placeholder="npm run dev"
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit();
            }}
          />
        </label>
        <div className="form-grid">
          <label>
            Name
            <input name="name" pattern="[A-Za-z0-9._\-]+" maxLength={64} placeholder="web" autoComplete="off" />
          </label>
          <label>
            Session that owns it
            <input name="session" list="start-sessions" maxLength={256} placeholder="default" autoComplete="off" />
            <datalist id="start-sessions">
              {sessions.map((session) => (
                <option key={session} value={session} />
              ))}
            </datalist>
          </label>
          <label>
            Directory
            <input name="cwd" placeholder="/srv/project" autoComplete="off" />
          </label>
          <label>
            Task
            <input name="task" maxLength={256} autoComplete="off" />
          </label>
          <label>
            Restart
            <select name="restart" defaultValue="never">
              <option value="never">never</option>
              <option value="on-failure">when it fails</option>
              <option value="always">always</option>
            </select>
          </label>
          <label className="check">
            <input type="checkbox" name="pty" /> With a terminal
          </label>
        </div>
        {error && <Failure text={error} />}
        <div className="dialog-actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button className="primary" disabled={isBusy}>
            {isBusy ? "Starting …" : "Start"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
