/** The paginated log together with new entries from the live stream. The list does not move while the user is reading. */
import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { ResponseOf } from '../../api/client.ts';
import { type LiveEntry, useLive } from '../../api/live.ts';
import { usePages, useRows } from '../../api/pages.ts';
import { matches } from './matches.ts';
import { merge } from './rows.ts';

/** At this length the list is reloaded, so that a page left open for days does not grow without bound. */
const RECEIVED_MAX = 5_000;
const PAGE_COUNT = 200;
/** Bursts are rendered a few times a second instead of once per entry. */
const RENDER_MS = 250;

interface Settings {
  isEnabled: boolean;
  isLive: boolean;
  isPaused: boolean;
}

export function useGrowingLog(filter: Record<string, string>, { isEnabled, isLive, isPaused }: Settings) {
  const queries = useQueryClient();
  const text = JSON.stringify(filter);
  /** Newest first. */
  const [received, setReceived] = useState<readonly LiveEntry[]>([]);
  const pending = useRef<LiveEntry[]>([]);
  const [pendingCount, setPendingCount] = useState(0);
  const restart = useCallback(() => {
    pending.current = [];
    setReceived([]);
    return queries.resetQueries({ queryKey: ['listLogs', 'pages'] });
  }, [queries]);
  const live = useLive(isEnabled && isLive, {
    // The pages are reloaded, since they contain the entries that were written while the stream was closed.
    onOpen: () => void queries.invalidateQueries({ queryKey: ['listLogs', 'pages'] }),
    onEntries: (entries) => {
      pending.current.push(...entries.filter((entry) => matches(entry, filter)));
      if (pending.current.length > RECEIVED_MAX) pending.current.splice(0, pending.current.length - RECEIVED_MAX);
    },
  });
  const history = usePages(
    'listLogs',
    { query: { ...filter, count: PAGE_COUNT } as never },
    { isEnabled, isRefreshed: !live.isOpen && !isPaused },
  );

  // biome-ignore lint/correctness/useExhaustiveDependencies: a changed filter shows another list
  useEffect(() => {
    pending.current = [];
    setReceived([]);
    setPendingCount(0);
  }, [text]);

  useEffect(() => {
    const render = (): void => {
      setPendingCount(pending.current.length);
      if (isPaused || pending.current.length === 0) return;
      if (received.length + pending.current.length > RECEIVED_MAX) return void restart();
      const fresh = pending.current.splice(0).reverse();
      setPendingCount(0);
      setReceived((before) => [...fresh, ...before]);
    };
    render();
    const timer = setInterval(render, RENDER_MS);
    return () => clearInterval(timer);
  }, [isPaused, received.length, restart]);

  const read = useRows<ResponseOf<'listLogs'>, LiveEntry>(history.data, logsOf);
  const entries = useMemo(() => merge(received, read), [received, read]);
  return { entries, live, pendingCount, history };
}

function logsOf({ logs }: ResponseOf<'listLogs'>): readonly LiveEntry[] {
  return logs;
}
