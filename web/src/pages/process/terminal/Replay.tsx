/** The past of a terminal: any moment by a slider, or played. */
import { useCallback, useEffect, useRef, useState } from "react";
import { request } from "../../../api/http";
import { castPath, logTimes } from "../../../api/operations";
import { sentenceOf } from "../../../api/problem";
import type { Process, TimeEntry } from "../../../api/types";
import { theme } from "../../../app/theme";
import { sayError } from "../../../app/toasts";
import { Failure, Loading } from "../../../components/basics";
import { Icon } from "../../../components/Icon";
import { duration, exact } from "../../../model/format";
import { titleOf } from "../../../model/state";
import { LogBytes } from "../log/bytes";
import { save } from "../log/download";
import type { Emulator } from "./xterm";

/** A jump draws at most this much output before its moment. */
const LEAD = 256 * 1024;
const STEP = 100;
const SPEEDS = [1, 4, 16];
/** While playing, a pause of the program takes no longer than this. */
const LONGEST_PAUSE = 2;

export function Replay({ process, onClose }: { process: Process; onClose(): void }) {
  const place = useRef<HTMLDivElement>(null);
  const emulator = useRef<Emulator | null>(null);
  const bytes = useRef(new LogBytes(process.id, "out"));
  const drawn = useRef(0);
  const running = useRef<Promise<void>>(Promise.resolve());
  const [times, setTimes] = useState<TimeEntry[] | null>(null);
  const [at, setAt] = useState(0);
  const [speed, setSpeed] = useState(4);
  const [isPlaying, setPlaying] = useState(false);
  const [error, setError] = useState<string | null>(null);

  const first = times?.[0]?.time ?? 0;
  const last = times?.at(-1)?.time ?? 0;

  const draw = useCallback(async (entries: TimeEntry[], time: number) => {
    const made = emulator.current;
    if (!made) return;
    const log = bytes.current;
    const index = lastBefore(entries, time);
    const to = entries[index + 1]?.offset ?? log.total;
    let from = drawn.current;
    if (to < from || to - from > LEAD) {
      made.terminal.reset();
      from = Math.max(log.dropped, to - LEAD);
    }
    const sized = entries.slice(0, index + 1).findLast((entry) => entry.cols && entry.rows);
    if (sized?.cols && sized.rows) made.terminal.resize(sized.cols, sized.rows);
    if (to > from) {
      const piece = await log.window(from, to, new AbortController().signal);
      made.terminal.write(piece.data.subarray(Math.max(0, from - piece.start), to - piece.start));
    }
    drawn.current = to;
  }, []);

  useEffect(() => {
    let isGone = false;
    let end = () => {};
    const begin = async () => {
      const [{ createEmulator }, found] = await Promise.all([
        import("./xterm"),
        logTimes(process.id, "out", 0, undefined),
        bytes.current.next(0, 0, 0, new AbortController().signal),
      ]);
      if (isGone || !place.current) return;
      const made = createEmulator(place.current, process.cols ?? 80, process.rows ?? 24, false);
      emulator.current = made;
      const stopPaint = theme.subscribe(() => requestAnimationFrame(made.paint));
      end = () => {
        stopPaint();
        made.dispose();
      };
      setTimes(found.times);
      setAt(found.times.at(-1)?.time ?? 0);
      requestAnimationFrame(made.scale);
    };
    begin().catch((failed: unknown) => setError(sentenceOf(failed)));
    return () => {
      isGone = true;
      end();
      emulator.current = null;
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [process.id]);

  useEffect(() => {
    if (!times?.length) return;
    running.current = running.current.then(() => draw(times, at)).catch((failed: unknown) => setError(sentenceOf(failed)));
  }, [times, at, draw]);

  useEffect(() => {
    if (!isPlaying || !times?.length) return;
    const timer = setInterval(() => {
      setAt((now) => {
        const next = times[lastBefore(times, now) + 1]?.time;
        if (next === undefined) {
          setPlaying(false);
          return now;
        }
        const step = (STEP / 1000) * speed;
        return next - now > LONGEST_PAUSE + step ? next - LONGEST_PAUSE : now + step;
      });
    }, STEP);
    return () => clearInterval(timer);
  }, [isPlaying, speed, times]);

  const play = () => {
    if (!isPlaying && at >= last) setAt(first);
    setPlaying(!isPlaying);
  };

  return (
    <div className="terminal">
      <div className="terminal-bar" role="toolbar" aria-label="Replay">
        <button className="primary" onClick={play} disabled={!times?.length}>
          <Icon name={isPlaying ? "pause" : "play"} /> {isPlaying ? "Pause" : "Play"}
        </button>
        <input
          className="replay-slider"
          type="range"
          aria-label="Time"
          aria-valuetext={times?.length ? `${duration(at - first)} of ${duration(last - first)}` : undefined}
          min={first}
          max={last}
          step="any"
          value={at}
          disabled={!times?.length}
          onChange={(event) => {
            setPlaying(false);
            setAt(Number(event.target.value));
          }}
        />
        <span className="number" title={at ? exact(at) : undefined}>
          {duration(at - first)} / {duration(last - first)}
        </span>
        <select aria-label="Speed" value={speed} onChange={(event) => setSpeed(Number(event.target.value))}>
          {SPEEDS.map((value) => (
            <option key={value} value={value}>
              {value}×
            </option>
          ))}
        </select>
        <button title="As a recording for asciinema" onClick={() => void saveCast(process).catch(sayError)}>
          <Icon name="download" /> Cast
        </button>
        <button onClick={onClose}>Back to now</button>
      </div>
      {error && <Failure text={error} />}
      {times === null && !error && <Loading what="its past" />}
      {times?.length === 0 && <p className="log-empty">It wrote nothing yet, or when it did is not known.</p>}
      <div className="terminal-frame">
        <div ref={place} className="terminal-place" role="group" aria-label="Terminal as it was" />
      </div>
    </div>
  );
}

async function saveCast(process: Process): Promise<void> {
  save(await (await request(castPath(process.id))).blob(), `${titleOf(process)}.cast`);
}

/** The index of the last entry at this time or before it. */
function lastBefore(entries: TimeEntry[], time: number): number {
  let low = 0;
  let high = entries.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (entries[middle]!.time <= time) low = middle;
    else high = middle - 1;
  }
  return low;
}
