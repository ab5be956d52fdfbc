/** What is done to one or to many processes, each after one question. */
import { forget, killMany, kill, removeMany, restart, transfer } from "../../api/operations";
import type { Process } from "../../api/types";
import { askText, confirm } from "../../components/confirm";
import { say, sayError } from "../../app/toasts";
import { dropRows, processes, put, touch } from "../../feed/processes";
import { plural } from "../../model/format";
import { titleOf } from "../../model/state";

const AT_ONCE = 4;

/** Runs for each, a few at a time; returns what went wrong. */
async function each(found: Process[], run: (process: Process) => Promise<void>): Promise<unknown[]> {
  const left = [...found];
  const errors: unknown[] = [];
  const work = async () => {
    for (let process = left.shift(); process; process = left.shift()) await run(process).catch((error: unknown) => errors.push(error));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return errors;
}

function report(done: string, errors: unknown[]): void {
  if (errors.length) sayError(errors[0]);
  else say(done);
}

const named = (found: Process[]) =>
  found.length === 1 ? titleOf(found[0]!) : plural(found.length, "process", "processes");
const typedCount = (found: Process[]) => (found.length > 1 ? String(found.length) : undefined);

export async function killThem(found: Process[]): Promise<void> {
  const live = found.filter((process) => process.status !== "ended");
  if (!live.length) return say("None of these runs");
  const isAgreed = await confirm({
    title: `Kill ${named(live)}?`,
    text: "SIGTERM first; what is left after the grace time gets SIGKILL, with everything that it started.",
    action: live.length === 1 ? "Kill" : `Kill ${live.length}`,
    typed: typedCount(live),
  });
  if (!isAgreed) return;
  say(`Asked ${named(live)} to end …`);
  try {
    const results = live.length === 1 ? [await kill(live[0]!.id)] : (await killMany(live.map((one) => one.id))).results;
    const forced = results.filter((result) => result.forced).length;
    say(`Ended ${named(live)}${forced ? `, ${forced === results.length ? "" : `${forced} `}forced` : ""}`);
  } catch (error) {
    sayError(error);
  }
  for (const process of live) touch(process.id);
}

export async function restartThem(found: Process[]): Promise<void> {
  const isAgreed = await confirm({
    title: `Restart ${named(found)}?`,
    text: "A process that runs is ended first, with everything that it started.",
    action: found.length === 1 ? "Restart" : `Restart ${found.length}`,
    typed: typedCount(found),
  });
  if (!isAgreed) return;
  const errors = await each(found, async (process) => put((await restart(process.id, null)).process));
  report(`Restarted ${named(found)}`, errors);
}

export async function transferThem(found: Process[]): Promise<void> {
  const sessions = [...new Set([...processes.get().all.values()].map((process) => process.session))];
  const to = await askText({
    title: `Transfer ${named(found)}`,
    text: "The other session owns it from now on, and gets its notifications.",
    action: "Transfer",
    field: { label: "To the session", value: "", suggestions: sessions },
  });
  if (to === null) return;
  const errors = await each(found, async (process) => put((await transfer(process.id, to)).process));
  report(`Transferred ${named(found)} to ${to}`, errors);
}

export async function removeThem(found: Process[]): Promise<void> {
  const ended = found.filter((process) => process.status === "ended");
  if (!ended.length) return say("Only ended processes can be removed");
  const isAgreed = await confirm({
    title: `Remove ${named(ended)}?`,
    text: "Output and exit code are deleted. This cannot be undone.",
    action: ended.length === 1 ? "Remove" : `Remove ${ended.length}`,
    typed: typedCount(ended),
  });
  if (!isAgreed) return;
  try {
    if (ended.length === 1) await forget(ended[0]!.id);
    else await removeMany(ended.map((process) => process.id));
    dropRows(ended.map((process) => process.id));
    say(`Removed ${named(ended)}`);
  } catch (error) {
    sayError(error);
  }
}
