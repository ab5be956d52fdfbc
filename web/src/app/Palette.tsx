/** Everything that can be opened or done, found by typing. */
import { useMemo, useState } from "react";
import { Dialog } from "../components/basics";
import { StateIcon } from "../components/Icon";
import { processes } from "../feed/processes";
import { oneLine } from "../model/format";
import { bornAt, stateOf, titleOf } from "../model/state";
import { usePages, type PageEntry } from "./pages";
import { navigate, processPath } from "./router";
import { toggleTheme } from "./theme";

const MOST = 12;

interface Choice {
  key: string;
  label: string;
  detail: string;
  icon?: React.ReactNode;
  run(): void;
}

function commands(pages: readonly PageEntry[]): Choice[] {
  return [
    { key: "start", label: "Start a process", detail: "action", run: () => navigate("/processes?start=1") },
    { key: "talk", label: "New session with an agent", detail: "action", run: () => navigate("/chat?new=1") },
    { key: "theme", label: "Switch between light and dark", detail: "action", run: toggleTheme },
    ...pages.filter((page) => !page.isHidden).map((page) => ({
      key: page.path,
      label: page.label,
      detail: "page",
      run: () => navigate(page.path),
    })),
  ];
}

function choices(text: string, pages: readonly PageEntry[]): Choice[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (candidate: string) => words.every((word) => candidate.includes(word));
  const found = commands(pages).filter((command) => fits(command.label.toLowerCase()));
  const rows = [...processes.get().all.values()]
    .filter((process) => fits(`${titleOf(process)} ${process.command} ${process.session} ${process.id}`.toLowerCase()))
    .sort(
      (one, other) =>
        Number(one.status === "ended") - Number(other.status === "ended") || bornAt(other) - bornAt(one),
    )
    .slice(0, MOST)
    .map((process) => ({
      key: process.id,
      label: process.name ? `${process.name} · ${oneLine(process.command)}` : oneLine(process.command),
      detail: `${stateOf(process).word} · ${process.session}`,
      icon: (
        <span className={`state state-${stateOf(process).name}`}>
          <StateIcon name={stateOf(process).name} />
        </span>
      ),
      run: () => navigate(processPath(process.id)),
    }));
  return (words.length ? [...rows, ...found] : [...found.slice(0, 5), ...rows, ...found.slice(5)]).slice(0, MOST);
}

export function Palette({ onClose }: { onClose(): void }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const pages = usePages();
  const found = useMemo(() => choices(text, pages), [text, pages]);
  const run = (choice: Choice | undefined) => {
    onClose();
    choice?.run();
  };
  const onKey = (event: React.KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step) {
      event.preventDefault();
      setChosen((chosen + step + found.length) % Math.max(1, found.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(found[chosen]);
    }
  };
  return (
    <Dialog title="Command palette" onClose={onClose} className="palette">
      <input
        autoFocus
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={found[chosen] ? `choice-${chosen}` : undefined}
        aria-label="Find a process, a page or an action"
        placeholder="Find a process, a page or an action"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setChosen(0);
        }}
        onKeyDown={onKey}
      />
      <ul id="palette-list" role="listbox" aria-label="Found">
        {found.map((choice, index) => (
          <li
            key={choice.key}
            id={`choice-${index}`}
            role="option"
            aria-selected={index === chosen}
            onMouseMove={() => setChosen(index)}
            onClick={() => run(choice)}
          >
            {choice.icon}
            <span className="choice-label">{choice.label}</span>
            <span className="choice-detail">{choice.detail}</span>
          </li>
        ))}
        {found.length === 0 && (
          <li className="choice-none" role="option" aria-selected="false" aria-disabled="true">
            Nothing has these words
          </li>
        )}
      </ul>
    </Dialog>
  );
}
