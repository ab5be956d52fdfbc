import { useState } from "react";
import type { Process } from "../../../api/types";
import { Empty } from "../../../components/basics";
import { LiveTerminal } from "./LiveTerminal";
import { Replay } from "./Replay";

export function TerminalTab({ process }: { process: Process }) {
  const [isReplay, setReplay] = useState(false);
  if (!process.pty)
    return (
      <Empty title="This process has no terminal">
        Its output is in the log. To get one, start it with <code>holdfast run -t</code>.
      </Empty>
    );
  return isReplay ? (
    <Replay process={process} onClose={() => setReplay(false)} />
  ) : (
    <LiveTerminal key={process.restarts} process={process} onReplay={() => setReplay(true)} />
  );
}
