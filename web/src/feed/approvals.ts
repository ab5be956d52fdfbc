/**
 * Requests for approval. The stream makes this page a surface: a start waits for the decision once the request is on a
 * screen that the user can see.
 */
import { approvalShown } from "../api/operations";
import { request } from "../api/http";
import type { Approval } from "../api/types";
import { Store } from "./store";

const PAUSE = 2000;
/** After a new link the pending requests come within this time. */
const SETTLE_TIME = 500;

export const pendingApprovals = new Store<readonly Approval[]>([]);
/** Counts up with each change, so that a page that lists all of them reads again. */
export const approvalChanges = new Store(0);
const shown = new Set<string>();

export function startApprovals(): void {
  void (async () => {
    for (;;) {
      try {
        await readStream();
      } catch {
        // The link to the daemon is shown elsewhere.
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  })();
}

/** The user can see these now. */
export function markShown(approvals: readonly Approval[]): void {
  if (document.hidden) return;
  for (const approval of approvals) {
    if (shown.has(approval.id)) continue;
    shown.add(approval.id);
    approvalShown(approval.id).catch(() => shown.delete(approval.id));
  }
}

export function settle(approval: Approval): void {
  const others = pendingApprovals.get().filter((one) => one.id !== approval.id);
  pendingApprovals.set(approval.state === "pending" ? [...others, approval] : others);
  approvalChanges.set(approvalChanges.get() + 1);
}

async function readStream(): Promise<void> {
  // It never ends: what the page shows first goes before it.
  const answer = await request("/api/v1/approvals", { headers: { Accept: "text/event-stream" }, priority: "low" });
  shown.clear();
  // What was decided while the link was cut does not come again.
  const stale = new Set(pendingApprovals.get().map((approval) => approval.id));
  const settled = setTimeout(() => {
    pendingApprovals.set(pendingApprovals.get().filter((approval) => !stale.has(approval.id)));
  }, SETTLE_TIME);
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return clearTimeout(settled);
    buffer += value;
    for (let end = buffer.indexOf("\n\n"); end >= 0; end = buffer.indexOf("\n\n")) {
      const data = buffer
        .slice(0, end)
        .split("\n")
        .filter((line) => line.startsWith("data:"))
        .map((line) => line.slice(5).trimStart())
        .join("\n");
      buffer = buffer.slice(end + 2);
      if (!data) continue;
      const found = JSON.parse(data) as Partial<Approval>;
      stale.delete(found.id ?? "");
      take(found);
    }
  }
}

function take(found: Partial<Approval>): void {
  if (found.id?.startsWith("appr_") && found.state) settle(found as Approval);
}
