/** Small pieces that every page uses. */
import { useEffect, useRef, type MouseEvent, type ReactNode } from "react";
import type { Process } from "../api/types";
import { navigate } from "../app/router";
import { copy } from "../app/toasts";
import { useNow } from "../feed/clock";
import { ago, exact, oneLine } from "../model/format";
import { stateOf } from "../model/state";
import { StateIcon } from "./Icon";

export function State({ process }: { process: Process }) {
  const state = stateOf(process);
  return (
    <span className={`state state-${state.name}`}>
      <StateIcon name={state.name} />
      <span>{state.word}</span>
    </span>
  );
}

interface LinkProps {
  to: string;
  className?: string;
  title?: string;
  current?: boolean;
  children: ReactNode;
}

/** A link within the page; with ctrl or the middle button the browser opens it as usual. */
export function Link({ to, className, title, current, children }: LinkProps) {
  const follow = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    navigate(to);
  };
  return (
    <a href={to} className={className} title={title} onClick={follow} aria-current={current ? "page" : undefined}>
      {children}
    </a>
  );
}

export function Ago({ time }: { time: number }) {
  const now = useNow();
  return (
    <time dateTime={new Date(time * 1000).toISOString()} title={exact(time)}>
      {ago(time, now)}
    </time>
  );
}

/** An id or another text that a click copies. */
export function Copyable({ text, what = "the id", children }: { text: string; what?: string; children?: ReactNode }) {
  return (
    <button className="copyable" title={`Copy ${what}`} onClick={() => void copy(text, what)}>
      {children ?? oneLine(text)}
    </button>
  );
}

/** What is said in the place of a list that is empty. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children && <div className="empty-more">{children}</div>}
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <div className="empty" role="status">
      <span className="spinner" aria-hidden="true" /> Reading {what} …
    </div>
  );
}

export function Failure({ text, retry }: { text: string; retry?: () => void }) {
  return (
    <div className="failure" role="alert">
      <span>{text}</span>
      {retry && <button onClick={retry}>Try again</button>}
    </div>
  );
}

interface DialogProps {
  title: string;
  onClose(): void;
  children: ReactNode;
  className?: string;
}

/** A modal; escape and a click beside it close it. */
export function Dialog({ title, onClose, children, className = "" }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const shown = dialog.current;
    const before = document.activeElement;
    shown?.showModal();
    shown?.scrollTo(0, 0); // it may begin at the control that has the focus
    return () => {
      shown?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      className={`dialog ${className}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      <div className="dialog-body">{children}</div>
    </dialog>
  );
}

export function Sparkline({ values }: { values: number[] }) {
  if (values.length < 2) return <svg className="sparkline" viewBox="0 0 48 16" aria-hidden="true" />;
  const most = Math.max(10, ...values);
  const step = 48 / (values.length - 1);
  const points = values.map((value, index) => `${(index * step).toFixed(1)},${(15 - (13 * value) / most).toFixed(1)}`);
  return (
    <svg className="sparkline" viewBox="0 0 48 16" aria-hidden="true" preserveAspectRatio="none">
      <polygon points={`0,16 ${points.join(" ")} 48,16`} />
      <polyline points={points.join(" ")} />
    </svg>
  );
}
