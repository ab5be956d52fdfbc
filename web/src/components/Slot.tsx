/** Named places that extensions fill; one that fails shows nothing and harms nothing else. */
import { Component, type ComponentType, type ReactNode } from "react";
import { Store, useStore } from "../feed/store";

export interface SlotEntry {
  owner: string;
  slot: string;
  component: ComponentType;
}

const entries = new Store<readonly SlotEntry[]>([]);

/** An owner fills a slot once: the last component counts. */
export function fillSlot(entry: SlotEntry): void {
  const others = entries.get().filter((one) => one.owner !== entry.owner || one.slot !== entry.slot);
  entries.set([...others, entry]);
}

export function clearSlots(owner: string): void {
  entries.set(entries.get().filter((entry) => entry.owner !== owner));
}

export const filledSlots = () => entries.get();
const shown = new Set<string>();
/** Names of slots that were drawn, filled or not. */
export const shownSlots = () => shown;

export function useFilled(name: string): SlotEntry[] {
  shown.add(name);
  return useStore(entries).filter((entry) => entry.slot === name);
}

export function Slot({ name }: { name: string }) {
  const filled = useFilled(name);
  if (!filled.length) return null;
  return (
    <div className="slot" data-slot={name}>
      {filled.map((entry, index) => (
        <Boundary key={`${entry.owner}-${index}`} what={entry.owner}>
          <entry.component />
        </Boundary>
      ))}
    </div>
  );
}

interface BoundaryProps {
  what: string;
  children: ReactNode;
}

export class Boundary extends Component<BoundaryProps, { error: Error | null }> {
  override state = { error: null as Error | null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return (
      <div className="failure" role="alert">
        <span>
          {this.props.what} failed: {this.state.error.message}
        </span>
        <button onClick={() => this.setState({ error: null })}>Try again</button>
      </div>
    );
  }
}
