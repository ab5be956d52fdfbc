/** Finds text on the screen of a terminal, and in what has scrolled off it while it was shown. */
import { useEffect, useState, type RefObject } from "react";
import type { Emulator } from "./xterm";

interface TerminalFindProps {
  emulator: RefObject<Emulator | null>;
  onClose(): void;
}

export function TerminalFind({ emulator, onClose }: TerminalFindProps) {
  const [text, setText] = useState("");
  const [isFound, setFound] = useState(true);
  const find = (direction: "findNext" | "findPrevious", isIncremental = false) => {
    const search = emulator.current?.search;
    setFound(!text || (search?.[direction](text, { incremental: isIncremental }) ?? true));
  };
  useEffect(() => {
    find("findPrevious", true);
    // What is typed is found at once; the newest line first.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [text]);
  return (
    <span className="find" role="search">
      <input
        autoFocus
        type="search"
        aria-label="Find in the terminal"
        placeholder="Find"
        spellCheck={false}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") find(event.shiftKey ? "findNext" : "findPrevious");
          else if (event.key === "Escape") onClose();
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      <span className="find-count" role="status">{isFound ? "" : "no hits"}</span>
      <button aria-label="Earlier hit" title="Earlier (enter)" disabled={!text} onClick={() => find("findPrevious")}>
        ↑
      </button>
      <button aria-label="Later hit" title="Later (shift-enter)" disabled={!text} onClick={() => find("findNext")}>
        ↓
      </button>
      <button className="quiet" aria-label="Close find" onClick={onClose}>
        ✕
      </button>
    </span>
  );
}
