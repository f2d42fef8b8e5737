/** The paginated log together with new entries from the live stream. It does not move while the user is reading. */
import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { ResponseOf } from '../../api/client.ts';
import { type LiveEntry, useLive } from '../../api/live.ts';
import { usePages, useRows } from '../../api/pages.ts';
import { matches } from './matches.ts';
import { merge } from './rows.ts';

/** At this length the list is reloaded, so that a page left open for days does not grow without bound. */
const ARRIVED_MAX = 5_000;
const PAGE_COUNT = 200;
/** Bursts are rendered a few times a second instead of once per entry. */
const DRAW_MS = 250;

interface Settings {
  isEnabled: boolean;
  isLive: boolean;
  isPaused: boolean;
}

export function useGrowingLog(filter: Record<string, string>, { isEnabled, isLive, isPaused }: Settings) {
  const queries = useQueryClient();
  const text = JSON.stringify(filter);
  /** Newest first. */
  const [arrived, setArrived] = useState<readonly LiveEntry[]>([]);
  const waiting = useRef<LiveEntry[]>([]);
  const [waitingCount, setWaitingCount] = useState(0);
  const restart = useCallback(() => {
    waiting.current = [];
    setArrived([]);
    return queries.resetQueries({ queryKey: ['listLogs', 'pages'] });
  }, [queries]);
  const live = useLive(isEnabled && isLive, {
    // Entries written while the stream was closed are in the pages.
    onOpen: () => void queries.invalidateQueries({ queryKey: ['listLogs', 'pages'] }),
    onEntries: (entries) => {
      waiting.current.push(...entries.filter((entry) => matches(entry, filter)));
      if (waiting.current.length > ARRIVED_MAX) waiting.current.splice(0, waiting.current.length - ARRIVED_MAX);
    },
  });
  const history = usePages(
    'listLogs',
    { query: { ...filter, count: PAGE_COUNT } as never },
    { isEnabled, isRefreshed: !live.isOpen && !isPaused },
  );

  // biome-ignore lint/correctness/useExhaustiveDependencies: a changed filter shows another list
  useEffect(() => {
    waiting.current = [];
    setArrived([]);
    setWaitingCount(0);
  }, [text]);

  useEffect(() => {
    const draw = (): void => {
      setWaitingCount(waiting.current.length);
      if (isPaused || waiting.current.length === 0) return;
      if (arrived.length + waiting.current.length > ARRIVED_MAX) return void restart();
      const fresh = waiting.current.splice(0).reverse();
      setWaitingCount(0);
      setArrived((before) => [...fresh, ...before]);
    };
    draw();
    const timer = setInterval(draw, DRAW_MS);
    return () => clearInterval(timer);
  }, [isPaused, arrived.length, restart]);

  const read = useRows<ResponseOf<'listLogs'>, LiveEntry>(history.data, logsOf);
  const entries = useMemo(() => merge(arrived, read), [arrived, read]);
  return { entries, live, waitingCount, history };
}

function logsOf({ logs }: ResponseOf<'listLogs'>): readonly LiveEntry[] {
  return logs;
}
