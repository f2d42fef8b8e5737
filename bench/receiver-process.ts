/** Starts and controls a receiver process: sets how many messages it expects, and reads which arrived. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Peers } from './load.ts';

export type ReceiverCommand = { kind: 'expect'; messages: number } | { kind: 'report' };

export interface Arrivals {
  /** Messages that arrived at least once, of those expected. */
  distinct: number;
  /** Arrivals of messages that had already arrived. */
  repeated: number;
  /** Arrivals with a number that was not published. */
  unexpected: number;
  /** CLOCK_MONOTONIC when the last new message arrived; repeated arrivals do not count. */
  lastArrivalNs: bigint;
  /** First arrivals by message number; 0 if the message has not arrived. */
  arrivalsNs: BigUint64Array;
}

export type ReceiverEvent =
  | { kind: 'listening'; port: number }
  /** The process receives messages without an address of its own. */
  | { kind: 'receiving' }
  | { kind: 'ready' }
  | { kind: 'complete' }
  | ({ kind: 'report' } & Arrivals);

/** A process that counts arrivals. */
export interface ArrivalProcess {
  pid: number;
  /** Resets all counts, and expects the numbers 0 to `messages` - 1. */
  expect(messages: number): Promise<void>;
  /** Resolves with true once all expected messages arrived, or with false after `limitMs`. */
  complete(limitMs: number): Promise<boolean>;
  report(): Promise<Arrivals>;
  end(): Promise<void>;
}

/** The endpoint of the messages. */
export interface Receiver extends ArrivalProcess {
  url: string;
}

export async function startReceiver(peers: Peers): Promise<Receiver> {
  const program = fileURLToPath(new URL('./receiver.ts', import.meta.url));
  const { arrivals, first } = await startArrivals(program, [peers], 'listening');
  return { ...arrivals, url: `http://127.0.0.1:${first.port}` };
}

/** Resolves once the program has sent its first event, of the kind `until`. Rejects if the program exits earlier. */
export async function startArrivals<K extends ReceiverEvent['kind']>(
  program: string,
  argv: string[],
  until: K,
): Promise<{ arrivals: ArrivalProcess; first: Extract<ReceiverEvent, { kind: K }> }> {
  const child = fork(program, argv, { serialization: 'advanced' });
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
  });
  const channel = openChannel(child, exited);
  const early = exited.then(() => {
    throw new Error(`${program} exited before it was ready`);
  });
  const first = await Promise.race([channel.next(until), early]);
  return { arrivals: channel.arrivals, first };
}

function openChannel(child: ChildProcess, exited: Promise<void>) {
  const waiting = new Map<ReceiverEvent['kind'], (event: ReceiverEvent) => void>();
  let isComplete = false;
  child.on('message', (event: ReceiverEvent) => {
    if (event.kind === 'complete') isComplete = true;
    waiting.get(event.kind)?.(event);
    waiting.delete(event.kind);
  });
  const next = <K extends ReceiverEvent['kind']>(kind: K) =>
    new Promise<Extract<ReceiverEvent, { kind: K }>>((resolve) => {
      waiting.set(kind, (event) => resolve(event as Extract<ReceiverEvent, { kind: K }>));
    });

  const arrivals: ArrivalProcess = {
    pid: child.pid ?? Number.NaN,
    async expect(messages) {
      isComplete = false;
      const ready = next('ready');
      child.send({ kind: 'expect', messages } satisfies ReceiverCommand);
      await ready;
    },
    complete(limitMs) {
      if (isComplete) return Promise.resolve(true);
      return new Promise((resolve) => {
        const limit = setTimeout(() => {
          waiting.delete('complete');
          resolve(false);
        }, limitMs);
        waiting.set('complete', () => {
          clearTimeout(limit);
          resolve(true);
        });
      });
    },
    report() {
      const report = next('report');
      child.send({ kind: 'report' } satisfies ReceiverCommand);
      return report;
    },
    async end() {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
  return { arrivals, next };
}
