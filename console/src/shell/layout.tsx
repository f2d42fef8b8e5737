/** The layout of every screen: sidebar with navigation, project and theme. */
import { Link, Outlet, useRouterState } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { useCall } from '../api/client.ts';
import { environmentOf, setToken, useToken } from '../api/session.ts';
import { Button } from '../parts/button.tsx';
import { LoginForm } from './login.tsx';
import { Palette } from './palette.tsx';
import { currentTheme, setTheme, type Theme } from './theme.ts';

const SCREENS = [
  ['/overview', 'Overview'],
  ['/messages', 'Messages'],
  ['/dlq', 'DLQ'],
  ['/runs', 'Workflow runs'],
  ['/schedules', 'Schedules'],
  ['/queues', 'Queues'],
  ['/flow-control', 'Flow control'],
  ['/url-groups', 'URL groups'],
  ['/send', 'Send'],
  ['/settings', 'Settings'],
] as const;

/** Targets of the palette: the screens, and views that people search for by name. */
const PALETTE_SCREENS = [...SCREENS, ['/runs?view=waiting', 'Runs waiting for events']] as const;

export function Layout() {
  const token = useToken();
  const hadToken = useRef(false);
  hadToken.current ||= token !== undefined;
  if (token === undefined) return <LoginForm wasRejected={hadToken.current} />;
  return (
    <div className="grid min-h-dvh grid-rows-[auto_1fr] md:grid-cols-[13rem_minmax(0,1fr)] md:grid-rows-1">
      <a href="#main" className="sr-only focus:not-sr-only focus:absolute focus:z-10 focus:bg-panel focus:p-2">
        Skip to content
      </a>
      <Sidebar />
      <main id="main" tabIndex={-1} className="min-w-0 p-4 md:p-6">
        <Outlet />
      </main>
    </div>
  );
}

function Sidebar() {
  const [isOpen, setIsOpen] = useState(false);
  const path = useRouterState({ select: ({ location }) => location.pathname });
  // biome-ignore lint/correctness/useExhaustiveDependencies: navigation closes the menu
  useEffect(() => setIsOpen(false), [path]);
  return (
    <aside className="flex flex-col gap-3 border-b border-line bg-panel p-3 md:sticky md:top-0 md:h-dvh md:border-r md:border-b-0">
      <div className="flex items-center justify-between gap-2">
        <Link to="/" className="flex items-center gap-2 font-semibold">
          <img src={`${import.meta.env.BASE_URL}icon.svg`} alt="" width="22" height="22" />
          Waypost
        </Link>
        <Button kind="quiet" className="md:hidden" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
          Menu
        </Button>
      </div>
      <div className={`${isOpen ? 'flex' : 'hidden'} min-h-0 flex-1 flex-col gap-3 md:flex`}>
        <Palette screens={PALETTE_SCREENS} />
        <nav aria-label="Screens" className="flex flex-col gap-0.5 overflow-y-auto">
          {SCREENS.map(([to, name]) => (
            <Link
              key={to}
              to={to}
              className="rounded-md px-2.5 py-1.5 text-quiet hover:bg-raised hover:text-text aria-[current=page]:bg-raised aria-[current=page]:font-medium aria-[current=page]:text-text"
            >
              {name}
            </Link>
          ))}
        </nav>
        <Project />
        <footer className="flex flex-wrap items-center gap-2 text-xs text-quiet">
          <ThemeChoice />
          {environmentOf().mode === 'serve' && (
            <Button kind="quiet" onClick={() => setToken(undefined)}>
              Log out
            </Button>
          )}
        </footer>
      </div>
    </aside>
  );
}

const SCOPE_LIMITS: Record<string, string> = {
  'read-only': 'This token is read-only. Changes need a full token.',
  'publish-only': 'This token can only publish. Reading and other changes need a full token.',
};

/** The project whose data is shown, and the limits of the token. */
function Project() {
  const { data } = useCall('getSession', {}, { refreshMs: 0 });
  if (data === undefined) return null;
  const limits = SCOPE_LIMITS[data.scope];
  return (
    <div className="mt-auto flex flex-col gap-1 border-t border-line pt-3">
      <p className="text-xs text-quiet">Project</p>
      <p className="font-medium break-words">{data.project}</p>
      {limits !== undefined && <p className="text-xs text-warn">{limits}</p>}
    </div>
  );
}

function ThemeChoice() {
  const [theme, choose] = useState(currentTheme);
  return (
    <select
      aria-label="Theme"
      value={theme}
      className="h-7 rounded-md border border-line bg-page px-1.5 text-text"
      onChange={(event) => {
        const next = event.target.value as Theme;
        setTheme(next);
        choose(next);
      }}
    >
      <option value="system">System</option>
      <option value="light">Light</option>
      <option value="dark">Dark</option>
    </select>
  );
}
