/**
 * Marks the whole page while a component is shown, for rules of its layout. Not `:has()` on the root: with it, a browser
 * computes the styles of everything again whenever any element comes or goes.
 */
import { useLayoutEffect } from "react";

export function useRootClass(name: string, isOn = true): void {
  useLayoutEffect(() => {
    if (!isOn) return;
    const root = document.getElementById("root")!;
    root.classList.add(name);
    return () => root.classList.remove(name);
  }, [name, isOn]);
}
