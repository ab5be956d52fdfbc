import { useEffect, useRef, useState } from "react";
import { screen } from "../../../api/operations";
import type { Process } from "../../../api/types";
import { usePlace } from "../../../app/router";
import { useReadOnly } from "../../../app/session_context";
import { theme } from "../../../app/theme";
import { Ago } from "../../../components/basics";
import { clientsOf, typedOf } from "../../../model/state";
import { Attachment, restoring, type AttachState } from "./attach";
import { TerminalFind } from "./TerminalFind";
import type { Emulator } from "./xterm";

const TEXT_INTERVAL = 400;
const LOOK_INTERVAL = 700;

interface LiveTerminalProps {
  process: Process;
  onReplay(): void;
}

export function LiveTerminal({ process, onReplay }: LiveTerminalProps) {
  const place = useRef<HTMLDivElement>(null);
  const emulator = useRef<Emulator | null>(null);
  const attachment = useRef<Attachment | null>(null);
  const bar = useRef<HTMLButtonElement>(null);
  const [state, setState] = useState<AttachState>("connecting");
  const [error, setError] = useState<string | null>(null);
  const [size, setSize] = useState({ cols: process.cols ?? 80, rows: process.rows ?? 24 });
  const [isFit, setFit] = useState(false);
  const [showsText, setShowsText] = useState(usePlace().query.has("text"));
  const [text, setText] = useState("");
  const [isTyping, setTyping] = useState(false);
  const [isFinding, setFinding] = useState(false);
  const readOnly = useReadOnly();
  const isLive = process.status !== "ended";

  useEffect(() => {
    let isGone = false;
    let end = () => {};
    void import("./xterm").then(({ createEmulator }) => {
      if (isGone || !place.current) return;
      const made = createEmulator(place.current, process.cols ?? 80, process.rows ?? 24, isLive && !readOnly);
      emulator.current = made;
      const stopText = followText(made, setText);
      const stopPaint = theme.subscribe(() => requestAnimationFrame(made.paint));
      const observer = new ResizeObserver(() => made.scale());
      observer.observe(place.current.parentElement!);
      made.terminal.onResize(setSize);
      const stopLink = readOnly
        ? lookOnly(process.id, made, setState)
        : attach(process.id, made, attachment, (next, failed) => {
            setState(next);
            setError(failed);
          });
      made.terminal.onData(() => setTyping(true));
      made.terminal.attachCustomKeyEventHandler((event) => {
        if (!event.ctrlKey || event.key !== "]") return true;
        if (event.type === "keydown") {
          event.preventDefault();
          made.terminal.blur();
          bar.current?.focus();
        }
        return false;
      });
      if (isLive && !readOnly) made.terminal.focus();
      requestAnimationFrame(made.scale);
      end = () => {
        stopText();
        stopPaint();
        stopLink();
        observer.disconnect();
        made.dispose();
      };
    });
    return () => {
      isGone = true;
      end();
      emulator.current = null;
      attachment.current = null;
    };
    // One terminal for one process; what the process does comes over its link.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [process.id]);

  // Another client, or the program itself, changed the size.
  useEffect(() => {
    const made = emulator.current;
    if (made && !isFit && process.cols && process.rows && state === "attached") {
      made.terminal.resize(process.cols, process.rows);
      made.scale();
    }
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [process.cols, process.rows, state]);

  useEffect(() => {
    if (!isTyping) return;
    const timer = setTimeout(() => setTyping(false), 4000);
    return () => clearTimeout(timer);
  }, [isTyping]);

  useEffect(() => {
    if (!isFit) return;
    const fit = () => {
      const made = emulator.current;
      if (!made) return;
      made.terminal.options.fontSize = 13;
      const wanted = made.fit.proposeDimensions();
      if (!wanted || !wanted.cols || !wanted.rows) return;
      made.terminal.resize(wanted.cols, wanted.rows);
      attachment.current?.resize(wanted.cols, wanted.rows);
    };
    fit();
    addEventListener("resize", fit);
    return () => removeEventListener("resize", fit);
  }, [isFit]);

  return (
    <div className="terminal">
      <div className="terminal-bar" role="toolbar" aria-label="Terminal">
        <span className="terminal-who" role="status">
          {says(state, error, readOnly, isTyping, process)}
        </span>
        {state === "attached" && <LastTyped process={process} />}
        <span className="log-tools-end">
          {isFinding ? (
            <TerminalFind
              emulator={emulator}
              onClose={() => {
                setFinding(false);
                emulator.current?.terminal.focus();
              }}
            />
          ) : (
            <button onClick={() => setFinding(true)}>Find</button>
          )}
          {state === "attached" && !readOnly && (
            <>
              <kbd title="Leaves the terminal; the program goes on">ctrl ] leaves</kbd>
              <button aria-pressed={isFit} title="Give the program the size of this window" onClick={() => setFit(!isFit)}>
                Fit
              </button>
            </>
          )}
          <span className="muted">
            {size.cols}×{size.rows}
          </span>
          <button ref={bar} aria-pressed={showsText} onClick={() => setShowsText(!showsText)}>
            Text
          </button>
          <button onClick={onReplay}>Replay</button>
        </span>
      </div>
      <div className={`terminal-frame${showsText ? " is-hidden" : ""}${isFit ? " is-fit" : ""}`}>
        <div ref={place} className="terminal-place" aria-label="Terminal" role="group" />
      </div>
      <section className={showsText ? "terminal-text" : "hidden-text"} aria-label="Screen as text">
        <pre tabIndex={showsText ? 0 : -1}>{text || "The screen is empty."}</pre>
      </section>
    </div>
  );
}

function says(
  state: AttachState,
  error: string | null,
  readOnly: boolean,
  isTyping: boolean,
  process: Process,
): string {
  if (state === "connecting") return "Reading the screen …";
  if (state === "reconnecting") return `Not connected; what you type is not sent. ${error ?? "It attaches again by itself."}`;
  if (state === "ended") return "The program has ended: this is its last screen.";
  if (error) return `Refused: ${error}`;
  if (readOnly) return "You are watching.";
  const who = isTyping ? "You type" : "Attached: click, and type";
  const others = othersOf(process);
  return others.length ? `${who} · also attached: ${others.join(", ")}` : `${who} · ${process.session} may type, too`;
}

/** Who has a terminal on it, apart from this page. */
function othersOf(process: Process): string[] {
  const all = clientsOf(process).map((client) => client.by);
  const own = all.indexOf("dashboard");
  return all.filter((_, index) => index !== own);
}

function LastTyped({ process }: { process: Process }) {
  const typed = typedOf(process);
  if (typed === null) return null;
  return (
    <span className="muted terminal-typed">
      {typed.by} typed <Ago time={typed.at} />
    </span>
  );
}

function attach(
  id: string,
  made: Emulator,
  kept: React.RefObject<Attachment | null>,
  onState: (state: AttachState, error: string | null) => void,
): () => void {
  const link = new Attachment(id, made.terminal, onState);
  kept.current = link;
  made.terminal.onData((data) => link.type(data));
  made.terminal.onBinary((data) => link.typeBinary(data));
  link.start();
  return () => link.stop();
}

/** A page that may only look reads the screen from time to time. */
function lookOnly(id: string, made: Emulator, onState: (state: AttachState) => void): () => void {
  let at = -1;
  const look = async () => {
    try {
      const { screen: shown, process } = await screen(id);
      if (shown.at !== at) {
        at = shown.at;
        made.terminal.resize(shown.cols, shown.rows);
        made.terminal.write(restoring(shown));
      }
      onState(process.status === "ended" ? "ended" : "attached");
    } catch {
      onState("reconnecting");
    }
  };
  void look();
  const timer = setInterval(() => void look(), LOOK_INTERVAL);
  return () => clearInterval(timer);
}

function followText(made: Emulator, onText: (text: string) => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const changed = made.terminal.onRender(() => {
    timer ??= setTimeout(() => {
      timer = undefined;
      onText(made.text());
    }, TEXT_INTERVAL);
  });
  return () => {
    clearTimeout(timer);
    changed.dispose();
  };
}
