/**
 * What is added to the project's log, while it happens. One tab of the browser reads the stream and tells the others, so
 * that many tabs do not use up the few connections that a browser opens to a server.
 */
import { useEffect, useRef, useState } from 'react';
import type { LiveLost, LiveEntry as ToldEntry } from '../generated/interface.ts';
import { Refusal, send } from './client.ts';
import { EventReader, type StreamEvent } from './event-stream.ts';
import { token } from './session.ts';

/** As it is told, and as the list of the log has it. */
export type LiveEntry = Omit<ToldEntry, 'id'>;

type LiveEvent =
  | { kind: 'open' }
  | { kind: 'entries'; entries: LiveEntry[] }
  | { kind: 'lost'; count: number }
  | { kind: 'closed'; reason: string };

/** The server says something each 15 s; after three times as long it is gone. */
const SILENCE_MS = 45_000;
const BACK_OFF_MS = [500, 1_000, 2_000, 4_000, 8_000, 15_000] as const;

export interface Live {
  isOpen: boolean;
  /** Entries that this browser was too slow for. */
  lost: number;
  /** Why nothing comes at the moment. */
  trouble?: string | undefined;
}

interface Told {
  /** All entries from now on are told. */
  onOpen: () => void;
  onEntries: (entries: LiveEntry[]) => void;
}

export function useLive(isOn: boolean, told: Told): Live {
  const [live, setLive] = useState<Live>({ isOpen: false, lost: 0 });
  const latest = useRef(told);
  latest.current = told;
  useEffect(() => {
    if (!isOn) return;
    const stop = listen((event) => {
      if (event.kind === 'entries') return latest.current.onEntries(event.entries);
      if (event.kind === 'open') latest.current.onOpen();
      setLive((before) => next(before, event));
    });
    return () => {
      stop();
      setLive({ isOpen: false, lost: 0 });
    };
  }, [isOn]);
  return live;
}

function next(before: Live, event: Exclude<LiveEvent, { kind: 'entries' }>): Live {
  switch (event.kind) {
    case 'open':
      return { ...before, isOpen: true, trouble: undefined };
    case 'lost':
      return { ...before, lost: before.lost + event.count };
    case 'closed':
      return { ...before, isOpen: false, trouble: event.reason };
  }
}

/** Returns how to stop. */
function listen(tell: (event: LiveEvent) => void): () => void {
  const stop = new AbortController();
  const { signal } = stop;
  // A page that came by plain HTTP from another machine has no locks: it reads a stream of its own.
  if (!('locks' in navigator)) {
    void readForEver(tell, signal);
    return () => stop.abort();
  }
  // Tabs with other tokens may be of other projects.
  const channel = new BroadcastChannel(`waypost.live.${token() ?? ''}`);
  channel.onmessage = ({ data }) => tell(data as LiveEvent);
  const share = (event: LiveEvent): void => {
    channel.postMessage(event);
    tell(event);
  };
  const lead = (): Promise<void> => readForEver(share, signal);
  navigator.locks.request(channel.name, { signal }, lead).catch(() => {}); // given up before its turn came
  // Whoever leads may have opened the stream long ago.
  tell({ kind: 'open' });
  return () => {
    stop.abort();
    channel.close();
  };
}

async function readForEver(tell: (event: LiveEvent) => void, signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted; failures += 1) {
    const reason = await readOnce((event) => {
      if (event.kind === 'open') failures = 0;
      tell(event);
    }, signal);
    if (signal.aborted) return;
    tell({ kind: 'closed', reason });
    const backOffMs = BACK_OFF_MS[Math.min(failures, BACK_OFF_MS.length - 1)] ?? 0;
    // Not all browsers at the same time.
    await wait(backOffMs * (0.5 + Math.random()), signal);
  }
}

/** Returns why the stream ended. */
async function readOnce(tell: (event: LiveEvent) => void, signal: AbortSignal): Promise<string> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  try {
    const response = await send('watchLog', {}, AbortSignal.any([signal, silence.signal]));
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    const events = new EventReader();
    for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
      const read = events.read(piece.value);
      const entries = read.filter(({ event }) => event === 'entry').map(({ data }) => data as LiveEntry);
      for (const event of read.flatMap(otherEvent)) tell(event);
      if (entries.length > 0) tell({ kind: 'entries', entries });
    }
    return 'The server has ended the stream.';
  } catch (error) {
    return error instanceof Refusal ? error.message : 'The connection is lost.';
  } finally {
    clearTimeout(timer);
  }
}

function otherEvent({ event, data }: StreamEvent): LiveEvent[] {
  if (event === 'open') return [{ kind: 'open' }];
  if (event === 'lost') return [{ kind: 'lost', count: (data as LiveLost).count }];
  return [];
}

function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
