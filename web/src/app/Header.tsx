import { useState } from "react";
import { Icon } from "../components/Icon";
import { Link } from "../components/basics";
import { Slot } from "../components/Slot";
import { pendingApprovals } from "../feed/approvals";
import { summary } from "../feed/summary";
import { usePart, useStore } from "../feed/store";
import { count } from "../model/format";
import { findPage, usePages, type PageEntry } from "./pages";
import { usePlace } from "./router";
import { scheme, toggleTheme } from "./theme";

interface HeaderProps {
  openPalette(): void;
  openHelp(): void;
}

export function Header({ openPalette, openHelp }: HeaderProps) {
  const shown = useStore(scheme);
  const pages = usePages();
  return (
    <header className="header">
      <Link to="/processes" className="wordmark" title="holdfast">
        <span className="mark" aria-hidden="true" />
        holdfast
      </Link>
      <Slot name="header-left" />
      <nav className="nav" aria-label="Pages">
        {pages.filter((page) => !page.isHidden).map((page) => (
          <NavLink key={page.path} page={page} />
        ))}
      </nav>
      <Slot name="header-banner" />
      <div className="header-end">
        <Running />
        <button className="search" onClick={openPalette} aria-label="Command palette, ctrl K">
          <Icon name="search" />
          <kbd>ctrl K</kbd>
        </button>
        <Slot name="header-right" />
        <button className="icon-button wide-only" onClick={openHelp} aria-label="Keyboard help" title="Keyboard help (?)">
          <Icon name="keyboard" />
        </button>
        <button
          className="icon-button"
          onClick={toggleTheme}
          aria-label={shown === "dark" ? "Use the light theme" : "Use the dark theme"}
          title={shown === "dark" ? "Light" : "Dark"}
        >
          <Icon name={shown === "dark" ? "sun" : "moon"} />
        </button>
      </div>
      <BottomBar />
    </header>
  );
}

function Running() {
  const running = usePart(summary, (now) => now.running);
  return (
    <span className="running" title="Processes that run">
      <span className="dot" aria-hidden="true" /> {count(running)} running
    </span>
  );
}

function useIsCurrent(page: PageEntry): boolean {
  const { path } = usePlace();
  const found = findPage(path)?.entry;
  return found === page || found?.name === page.name || (found?.name === "process" && page.name === "processes");
}

function NavLink({ page, withIcon = false }: { page: PageEntry; withIcon?: boolean }) {
  const approvals = usePart(pendingApprovals, (now) => now.length);
  const isCurrent = useIsCurrent(page);
  return (
    <Link to={page.path} className="nav-link" current={isCurrent}>
      {withIcon && page.icon && <Icon name={page.icon} />}
      <span>{page.label}</span>
      {page.name === "approvals" && approvals > 0 && (
        <span className="badge badge-alert" title={`${approvals} to decide`}>
          {approvals}
        </span>
      )}
    </Link>
  );
}

/** On a phone the pages are at the bottom, where a thumb is. */
function BottomBar() {
  const [isOpen, setOpen] = useState(false);
  const pages = usePages().filter((page) => !page.isHidden);
  return (
    <nav className="bottom-bar" aria-label="Pages, at the bottom" onClick={() => setOpen(false)}>
      {pages.filter((page) => page.icon).map((page) => (
        <NavLink key={page.path} page={page} withIcon />
      ))}
      <button
        className="nav-link"
        aria-expanded={isOpen}
        onClick={(event) => {
          event.stopPropagation();
          setOpen(!isOpen);
        }}
      >
        <Icon name="menu" />
        <span>More</span>
      </button>
      {isOpen && (
        <div className="bottom-menu">
          {pages.filter((page) => !page.icon).map((page) => (
            <NavLink key={page.path} page={page} />
          ))}
        </div>
      )}
    </nav>
  );
}
