/** Maps every URL of the console to its screen. */
import {
  type AsyncRouteComponent,
  createRootRoute,
  createRoute,
  createRouter,
  type RouteComponent,
  redirect,
} from '@tanstack/react-router';
import { lazy } from 'react';
import { Screen as Overview } from './screens/overview/screen.tsx';
import { readSearch } from './search.ts';
import { Layout } from './shell/layout.tsx';
import { NotFound } from './shell/not-found.tsx';
import { ScreenFailed } from './shell/screen-failed.tsx';

const root = createRootRoute({ component: Layout, notFoundComponent: NotFound });

function screen<Path extends string>(path: Path, component: RouteComponent) {
  return createRoute({ getParentRoute: () => root, path, validateSearch: readSearch, component });
}

/** A screen that is loaded on demand. The router's own mechanism reloads the page on failure, even while the server is down. */
function lazyScreen<Path extends string>(path: Path, load: () => Promise<{ Screen: React.ComponentType }>) {
  const Screen = lazy(async () => ({ default: (await load()).Screen }));
  const preload = () =>
    load().then(
      () => {},
      () => {}, // the screen reports the error when it is opened
    );
  return screen(path, Object.assign(() => <Screen />, { preload }) as AsyncRouteComponent<object>);
}

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/overview' });
  },
});

const routeTree = root.addChildren([
  home,
  screen('/overview', Overview),
  lazyScreen('/messages', () => import('./screens/messages/screen.tsx')),
  lazyScreen('/messages/$messageId', () => import('./screens/message/screen.tsx')),
  lazyScreen('/dlq', () => import('./screens/dlq/screen.tsx')),
  lazyScreen('/runs', () => import('./screens/runs/screen.tsx')),
  lazyScreen('/runs/$runId', () => import('./screens/runs/run.tsx')),
  lazyScreen('/schedules', () => import('./screens/schedules/screen.tsx')),
  lazyScreen('/queues', () => import('./screens/queues/screen.tsx')),
  lazyScreen('/flow-control', () => import('./screens/flow-control/screen.tsx')),
  lazyScreen('/url-groups', () => import('./screens/url-groups/screen.tsx')),
  lazyScreen('/send', () => import('./screens/send/screen.tsx')),
  lazyScreen('/settings', () => import('./screens/settings/screen.tsx')),
]);

/** Values in the URL stay strings: a long numeric id would lose digits as a number. */
export const router = createRouter({
  routeTree,
  basepath: '/console',
  defaultErrorComponent: ScreenFailed,
  defaultPreload: 'intent',
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const given = Object.entries(search).filter(([, value]) => value !== undefined && value !== '');
    const text = new URLSearchParams(given as [string, string][]).toString();
    return text === '' ? '' : `?${text}`;
  },
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
