/** The parent's side of `origins.ts`. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** Refuses connections until it is told to be up. */
export const DOWN = 0;
/** Answers after two seconds. */
export const SLOW = 1;

export type OriginsCommand = { kind: 'expect'; messages: number } | { kind: 'up' } | { kind: 'report' };

export interface OriginsReport {
  missing: number;
  /** Arrivals beyond the first of each message. */
  repeated: number;
  /** By message number: CLOCK_MONOTONIC of its first arrival; 0 for one that has not arrived. */
  arrivalsNs: BigUint64Array;
  /** The most requests that one origin had under way at a time, and the most before it had answered any. */
  underWayMax: number;
  unansweredMax: number;
  /** At the slow origin: the most requests under way, by second since its first. */
  slowRise: number[];
}

export type OriginsEvent =
  | { kind: 'listening'; urls: string[] }
  | { kind: 'ready' }
  /** All messages of origins that are neither slow nor down have arrived. */
  | { kind: 'drained' }
  | { kind: 'complete' }
  | ({ kind: 'report' } & OriginsReport);

export interface Origins {
  pid: number;
  urls: readonly string[];
  /** `drained` and `complete` resolve when such events come. */
  expect(messages: number): Promise<{ drained: Promise<void>; complete: Promise<void> }>;
  /** Lets the origin that is down listen. */
  up(): void;
  report(): Promise<OriginsReport>;
  end(): Promise<void>;
}

export async function startOrigins(count: number): Promise<Origins> {
  const child = fork(fileURLToPath(new URL('./origins.ts', import.meta.url)), [String(count)], {
    serialization: 'advanced',
  });
  const exited = once(child, 'exit');
  const next = <K extends OriginsEvent['kind']>(kind: K) =>
    new Promise<Extract<OriginsEvent, { kind: K }>>((resolve) => {
      child.on('message', function hear(event: OriginsEvent) {
        if (event.kind !== kind) return;
        child.off('message', hear);
        resolve(event as Extract<OriginsEvent, { kind: K }>);
      });
    });
  const send = (command: OriginsCommand) => child.send(command);
  const early = exited.then(() => {
    throw new Error('the origins ended before they listened');
  });
  const { urls } = await Promise.race([next('listening'), early]);
  return {
    pid: child.pid ?? Number.NaN,
    urls,
    async expect(messages) {
      const drained = next('drained').then(() => {});
      const complete = next('complete').then(() => {});
      const ready = next('ready');
      send({ kind: 'expect', messages });
      await ready;
      return { drained, complete };
    },
    up() {
      send({ kind: 'up' });
    },
    report() {
      const report = next('report');
      send({ kind: 'report' });
      return report;
    },
    async end() {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}
