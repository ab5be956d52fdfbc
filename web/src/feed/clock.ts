/** The time now, in seconds, for texts such as `3s ago`; changes once a second while the page is shown. */
import { Store, useStore } from "./store";

const now = new Store(Date.now() / 1000);

setInterval(() => {
  if (!document.hidden) now.set(Date.now() / 1000);
}, 1000);

export const useNow = () => useStore(now);
