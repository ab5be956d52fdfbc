/**
 * A value that components can subscribe to. Changes in one task are one notification; with an interval in milliseconds
 * there is at most one in that time. The first change after a pause is notified at once.
 */
import { useSyncExternalStore } from "react";

export class Store<T> {
  private listeners = new Set<() => void>();
  private scheduled = false;
  private notified = -Infinity;

  constructor(
    private value: T,
    private readonly interval = 0,
  ) {}

  readonly get = (): T => this.value;

  set(value: T): void {
    if (Object.is(value, this.value)) return;
    this.value = value;
    this.changed();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  private changed(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    const wait = this.notified + this.interval - performance.now();
    if (wait > 0) setTimeout(() => this.notify(), wait);
    else queueMicrotask(() => this.notify());
  }

  private notify(): void {
    this.scheduled = false;
    if (this.interval) this.notified = performance.now();
    for (const listener of this.listeners) listener();
  }
}

export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, store.get);
}

/** A part of the value. The component is drawn again only where that part is another one. */
export function usePart<T, P>(store: Store<T>, part: (value: T) => P): P {
  return useSyncExternalStore(store.subscribe, () => part(store.get()));
}
