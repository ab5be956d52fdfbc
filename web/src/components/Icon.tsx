/** Icons, drawn on a grid of 16. Those of states differ in shape, not in colour alone. */
import type { ReactNode } from "react";
import type { StateName } from "../model/state";

const line = { fill: "none", stroke: "currentColor", strokeWidth: 1.75, strokeLinecap: "round", strokeLinejoin: "round" } as const;

const STATES: Record<StateName, ReactNode> = {
  running: <circle cx="8" cy="8" r="4.5" fill="currentColor" />,
  starting: (
    <>
      <circle cx="8" cy="8" r="5.25" {...line} />
      <path d="M8 2.75a5.25 5.25 0 0 0 0 10.5z" fill="currentColor" />
    </>
  ),
  succeeded: <path d="M3 8.5l3.25 3.5L13 4.5" {...line} />,
  failed: <path d="M4 4l8 8M12 4l-8 8" {...line} />,
  killed: <rect x="4" y="4" width="8" height="8" rx="1" fill="currentColor" />,
  waiting: <path d="M5.5 4v8M10.5 4v8" {...line} strokeWidth={2.25} />,
  asks: (
    <>
      <path d="M5.25 5.75a2.75 2.75 0 1 1 4 2.45c-.8.45-1.25.9-1.25 1.8" {...line} />
      <circle cx="8" cy="13" r="1.1" fill="currentColor" />
    </>
  ),
  stalled: (
    <>
      <path d="M8 2.5l6 11H2z" {...line} />
      <path d="M8 6.75v3" {...line} />
      <circle cx="8" cy="11.6" r=".8" fill="currentColor" />
    </>
  ),
  unreachable: <path d="M13 5.5H3.5l2.5-2.5M3 10.5h9.5L10 13" {...line} />,
  lost: (
    <>
      <circle cx="8" cy="8" r="5" {...line} />
      <path d="M4 12.5l8-9" {...line} />
    </>
  ),
};

const OTHERS = {
  approval: (
    <>
      <path d="M8 3v6.5" {...line} strokeWidth={2.25} />
      <circle cx="8" cy="13" r="1.25" fill="currentColor" />
    </>
  ),
  moon: <path d="M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z" {...line} />,
  sun: <path d="M8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1M5.25 8a2.75 2.75 0 1 0 5.5 0 2.75 2.75 0 0 0-5.5 0z" {...line} />,
  search: <path d="M11 11l3 3M2.5 7a4.5 4.5 0 1 0 9 0 4.5 4.5 0 0 0-9 0z" {...line} />,
  plus: <path d="M8 3v10M3 8h10" {...line} />,
  back: <path d="M13 8H3.5M7.5 4l-4 4 4 4" {...line} />,
  down: <path d="M4 6.5l4 4 4-4" {...line} />,
  download: <path d="M8 2.5v7.5M4.75 7L8 10.25 11.25 7M3 13.5h10" {...line} />,
  copy: <path d="M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z" {...line} />,
  menu: <path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11" {...line} />,
  processes: <path d="M2.5 4h11M2.5 8h11M2.5 12h7" {...line} />,
  sessions: <path d="M2.5 5.5h8v8h-8zM5.5 5.5v-3h8v8h-3" {...line} />,
  chat: <path d="M2.5 3h11v8h-6l-3 2.5V11h-2zM5.5 6h5M5.5 8.2h3" {...line} />,
  events: <path d="M1.5 8h3l2-5 3 10 2-5h3" {...line} />,
  link: <path d="M6.5 9.5l3-3M7 4.5l1-1a3 3 0 0 1 4.5 4.5l-1 1M9 11.5l-1 1A3 3 0 0 1 3.500 8l1-1" {...line} />,
  play: <path d="M5 3l8 5-8 5z" fill="currentColor" />,
  pause: <path d="M5.5 3.500v9M10.500 3.500v9" {...line} strokeWidth={2.25} />,
  keyboard: <path d="M1.500 4h13v8h-13zM4 6.500h.01M7 6.500h.01M10 6.500h.01M12 6.500h.01M5 9.500h6" {...line} />,
} satisfies Record<string, ReactNode>;

export type IconName = keyof typeof OTHERS;

export function StateIcon({ name }: { name: StateName }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
      {STATES[name]}
    </svg>
  );
}

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
      {OTHERS[name]}
    </svg>
  );
}
