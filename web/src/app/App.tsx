import { Suspense, useEffect, useState } from "react";
import type { DashboardSession } from "../api/session";
import { Empty, Link, Loading } from "../components/basics";
import { Boundary, Slot, useFilled } from "../components/Slot";
import { useRootClass } from "../components/useRootClass";
import { pendingApprovals } from "../feed/approvals";
import { summary } from "../feed/summary";
import { usePart, useStore } from "../feed/store";
import { Header } from "./Header";
import { Help } from "./Help";
import { useKeys } from "./keys";
import { LinkState } from "./LinkState";
import { NeedsYou } from "./NeedsYou";
import { findPage, usePages } from "./pages";
import { isLoading } from "../plugins/registry";
import { Palette } from "./Palette";
import { navigate, usePlace } from "./router";
import { SessionContext } from "./session_context";
import { ConfirmHost } from "../components/confirm";
import { Toasts } from "./toasts";

export function App({ session }: { session: DashboardSession }) {
  const { path } = usePlace();
  const pages = usePages();
  const isPluginsLoading = useStore(isLoading);
  const [overlay, setOverlay] = useState<"palette" | "help" | null>(null);
  const found = findPage(path);
  useRootClass("has-sidebar", useFilled("sidebar").length > 0);
  useKeys("Everywhere", [
    { key: "ctrl-k", does: "command palette", inFields: true, run: () => setOverlay("palette") },
    { key: "?", does: "this help", run: () => setOverlay("help") },
    { key: "a", does: "answer the first approval", run: () => navigate("/approvals") },
    { key: "escape", does: "back to the processes", run: () => navigate("/processes") },
    ...pages.filter((page) => !page.isHidden).map((page, index) => ({
      key: String(index + 1),
      does: page.label,
      run: () => navigate(page.path),
    })),
  ]);

  return (
    <SessionContext value={session}>
      <Title label={found?.entry.label ?? "Not found"} />
      <Slot name="backdrop" />
      <a className="skip" href="#main">
        Skip to the content
      </a>
      <Header openPalette={() => setOverlay("palette")} openHelp={() => setOverlay("help")} />
      <LinkState />
      <NeedsYou
        page={found?.entry.name ?? ""}
        process={found?.entry.name === "process" ? found.rest[0] : undefined}
        session={found?.entry.name === "chat" ? found.rest[0] : undefined}
      />
      <Slot name="pre-main" />
      <Slot name="sidebar" />
      <main id="main" tabIndex={-1} className={`page page-${found?.entry.name ?? "none"}`}>
        {found === null && isPluginsLoading ? (
          <Loading what="plugins" />
        ) : found === null ? (
          <Empty title="There is no such page">
            <Link to="/processes">All processes</Link>
          </Empty>
        ) : (
          <>
            <Slot name={`${found.entry.name}:top`} />
            <Boundary key={found.entry.name} what={found.entry.label}>
              <Suspense fallback={<Loading what={found.entry.label.toLowerCase()} />}>
                <found.entry.component rest={found.rest} />
              </Suspense>
            </Boundary>
            <Slot name={`${found.entry.name}:bottom`} />
          </>
        )}
      </main>
      <Slot name="post-main" />
      <Footer />
      {overlay === "palette" && <Palette onClose={() => setOverlay(null)} />}
      {overlay === "help" && <Help onClose={() => setOverlay(null)} />}
      <Slot name="overlay" />
      <ConfirmHost />
      <Toasts />
    </SessionContext>
  );
}

/** A component of its own: what it counts changes often, and nothing else is drawn again. */
function Title({ label }: { label: string }) {
  const waiting = useStore(pendingApprovals).length + usePart(summary, (now) => now.asks.length);
  useEffect(() => {
    document.title = `${waiting ? `(${waiting}) ` : ""}${label} · holdfast`;
  }, [label, waiting]);
  return null;
}

/** There only for what plugins put into it. */
function Footer() {
  const isFilled = [useFilled("footer-left"), useFilled("footer-right")].some((filled) => filled.length > 0);
  if (!isFilled) return null;
  return (
    <footer className="footer">
      <Slot name="footer-left" />
      <Slot name="footer-right" />
    </footer>
  );
}
