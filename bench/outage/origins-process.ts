/** Starts and controls the process of `origins.ts`. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** Refuses connections until the command `up`. */
export const DOWN = 0;
/** Responds after two seconds. */
export const SLOW = 1;

export type OriginsCommand = { kind: 'expect'; messages: number } | { kind: 'up' } | { kind: 'report' };

export interface OriginsReport {
  missing: number;
  /** Arrivals of messages that had already arrived. */
  repeated: number;
  /** By message number: CLOCK_MONOTONIC of the first arrival; 0 if the message has not arrived. */
  arrivalsNs: BigUint64Array;
  /** The maximum number of concurrent requests of one origin: overall, and before the first response of that origin. */
  concurrentMax: number;
  unansweredMax: number;
  /** Maximum number of concurrent requests at the slow origin, by second since its first request. */
  slowRise: number[];
}

export type OriginsEvent =
  | { kind: 'listening'; urls: string[] }
  | { kind: 'ready' }
  /** All messages for origins that are neither slow nor down have arrived. */
  | { kind: 'drained' }
  | { kind: 'complete' }
  | ({ kind: 'report' } & OriginsReport);

export interface Origins {
  pid: number;
  urls: readonly string[];
  /** `drained` and `complete` resolve on the events of these names. */
  expect(messages: number): Promise<{ drained: Promise<void>; complete: Promise<void> }>;
  /** Starts the origin that is down. */
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
      child.on('message', function onMessage(event: OriginsEvent) {
        if (event.kind !== kind) return;
        child.off('message', onMessage);
        resolve(event as Extract<OriginsEvent, { kind: K }>);
      });
    });
  const send = (command: OriginsCommand) => child.send(command);
  const early = exited.then(() => {
    throw new Error('the origins process exited before it listened');
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
