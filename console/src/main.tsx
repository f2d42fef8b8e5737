import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import './app.css';
import { RequestError } from './api/client.ts';
import { readEnvironment } from './api/session.ts';
import { router } from './router.tsx';
import { applyTheme } from './shell/theme.ts';

const TRIES_MAX = 3;

applyTheme();
const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // Client errors are permanent. Other errors may end when a restarting server is available again.
      retry: (tries, error) =>
        tries < TRIES_MAX && !(error instanceof RequestError && error.status >= 400 && error.status < 500),
    },
  },
});
const root = document.getElementById('root');
if (root === null) throw new Error('the page has no root');
// Without an environment the page still shows that the server does not respond.
await readEnvironment().catch(() => {});
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
