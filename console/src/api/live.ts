/**
 * Streams new entries of the project's log. One tab of the browser reads the stream and publishes the entries to other
 * tabs, so that many tabs do not use up the few connections that a browser opens to one server.
 */
import { useEffect, useRef, useState } from 'react';
import type { LiveLost, LiveEntry as StreamedEntry } from '../generated/interface.ts';
import { RequestError, send } from './client.ts';
import { EventReader, type StreamEvent } from './event-stream.ts';
import { token } from './session.ts';

/** An entry of the stream, in the form of the log list. */
export type LiveEntry = Omit<StreamedEntry, 'id'>;

type LiveEvent =
  | { kind: 'open' }
  | { kind: 'entries'; entries: LiveEntry[] }
  | { kind: 'lost'; count: number }
  | { kind: 'closed'; reason: string };

/** The server sends at least a comment every 15 s; after 45 s without data the connection is dead. */
const SILENCE_MAX_MS = 45_000;
const BACK_OFF_MS = [500, 1_000, 2_000, 4_000, 8_000, 15_000] as const;

export interface LiveStatus {
  isOpen: boolean;
  /** How many entries were dropped because this browser was too slow. */
  lost: number;
  /** The reason why the stream is interrupted at the moment. */
  problem?: string | undefined;
}

interface LiveListeners {
  /** Called when the stream is open. All later entries are passed to `onEntries`. */
  onOpen: () => void;
  onEntries: (entries: LiveEntry[]) => void;
}

export function useLive(isOn: boolean, listeners: LiveListeners): LiveStatus {
  const [live, setLive] = useState<LiveStatus>({ isOpen: false, lost: 0 });
  const latest = useRef(listeners);
  latest.current = listeners;
  useEffect(() => {
    if (!isOn) return;
    const stop = subscribe((event) => {
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

function next(before: LiveStatus, event: Exclude<LiveEvent, { kind: 'entries' }>): LiveStatus {
  switch (event.kind) {
    case 'open':
      return { ...before, isOpen: true, problem: undefined };
    case 'lost':
      return { ...before, lost: before.lost + event.count };
    case 'closed':
      return { ...before, isOpen: false, problem: event.reason };
  }
}

/** Returns a function that ends the subscription. */
function subscribe(onEvent: (event: LiveEvent) => void): () => void {
  const stop = new AbortController();
  const { signal } = stop;
  // On plain HTTP from another machine, locks are unavailable, so the tab reads a stream of its own.
  if (!('locks' in navigator)) {
    void readForever(onEvent, signal);
    return () => stop.abort();
  }
  // The channel is per token, since tabs with other tokens may belong to other projects.
  const channel = new BroadcastChannel(`waypost.live.${token() ?? ''}`);
  channel.onmessage = ({ data }) => onEvent(data as LiveEvent);
  const publish = (event: LiveEvent): void => {
    channel.postMessage(event);
    onEvent(event);
  };
  const readAsLeader = (): Promise<void> => readForever(publish, signal);
  navigator.locks.request(channel.name, { signal }, readAsLeader).catch(() => {}); // aborted while waiting for the lock
  // Another tab may have opened the stream long ago, before this tab could receive the event.
  onEvent({ kind: 'open' });
  return () => {
    stop.abort();
    channel.close();
  };
}

async function readForever(onEvent: (event: LiveEvent) => void, signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted; failures += 1) {
    const reason = await readConnection((event) => {
      if (event.kind === 'open') failures = 0;
      onEvent(event);
    }, signal);
    if (signal.aborted) return;
    onEvent({ kind: 'closed', reason });
    const backOffMs = BACK_OFF_MS[Math.min(failures, BACK_OFF_MS.length - 1)] ?? 0;
    // Random jitter, so that browsers do not reconnect at the same time.
    await wait(backOffMs * (0.5 + Math.random()), signal);
  }
}

/** Reads one connection. Returns the reason why it ended. */
async function readConnection(onEvent: (event: LiveEvent) => void, signal: AbortSignal): Promise<string> {
  const timeout = new AbortController();
  let timer = setTimeout(() => timeout.abort(), SILENCE_MAX_MS);
  try {
    const response = await send('watchLog', {}, AbortSignal.any([signal, timeout.signal]));
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    const events = new EventReader();
    for (let chunk = await reader?.read(); chunk && !chunk.done; chunk = await reader?.read()) {
      clearTimeout(timer);
      timer = setTimeout(() => timeout.abort(), SILENCE_MAX_MS);
      const read = events.read(chunk.value);
      const entries = read.filter(({ event }) => event === 'entry').map(({ data }) => data as LiveEntry);
      for (const event of read.flatMap(otherEvent)) onEvent(event);
      if (entries.length > 0) onEvent({ kind: 'entries', entries });
    }
    return 'The server closed the stream.';
  } catch (error) {
    return error instanceof RequestError ? error.message : 'The connection was lost.';
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
