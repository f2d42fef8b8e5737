import { expect, it } from 'vitest';
import { type MemoryReservation, ResponseQueue } from '../../src/api/edge/response-queue.ts';
import { ClientDisconnected } from '../../src/api/requests/request-body.ts';
import type { ApiResponse } from '../../src/api/response.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

const SLOW = 1;
const OTHER = 2;
const THIRD = 3;

/** Memory for 800 bytes; a project alone may have 700. */
function open() {
  const clock = new SimulatedClock();
  const queue = new ResponseQueue(800, clock);
  const started = new Map<string, MemoryReservation | undefined>();
  const hangUps = new Map<string, AbortController>();
  return {
    clock,
    /** Reserves memory for a response whose client reads nothing until the test ends it. */
    reserve(name: string, projectId: number, bytes: number): Promise<void> {
      const hangUp = new AbortController();
      hangUps.set(name, hangUp);
      return queue.reserve(projectId, bytes, hangUp.signal).then((reservation) => {
        started.set(name, reservation);
        // Like the connection when it is closed.
        reservation.cutOff.addEventListener('abort', () => reservation.release());
      });
    },
    /** Builds a response with `make` once there is memory. */
    runWithMemory(
      name: string,
      projectId: number,
      bytes: number,
      make: () => Promise<ApiResponse>,
    ): Promise<ApiResponse> {
      return queue.runWithMemory(projectId, bytes, new AbortController().signal, () => {
        started.set(name, undefined);
        return make();
      });
    },
    end: (name: string) => started.get(name)?.release(),
    hangUp: (name: string) => hangUps.get(name)?.abort(),
    /** Names of the responses that have started. */
    started: async (): Promise<string[]> => {
      await new Promise(setImmediate);
      return [...started.keys()];
    },
    isCutOff: (name: string) => started.get(name)?.cutOff.aborted,
  };
}

it('starts as many responses as fit, and the others of the project in order', async () => {
  const { reserve, started, end } = open();
  for (const [name, bytes] of Object.entries({ a: 400, b: 300, c: 500, d: 100 })) void reserve(name, SLOW, bytes);
  expect(await started()).toEqual(['a', 'b']);
  end('b');
  expect(await started()).toEqual(['a', 'b']); // c does not fit, and d came after it
  end('a');
  expect(await started()).toEqual(['a', 'b', 'c', 'd']);
});

it('starts a response that exceeds the memory, alone', async () => {
  const { reserve, started, end } = open();
  for (const [name, bytes] of Object.entries({ a: 10, b: 5_000, c: 20 })) void reserve(name, SLOW, bytes);
  expect(await started()).toEqual(['a']);
  end('a');
  expect(await started()).toEqual(['a', 'b']);
  end('b');
  expect(await started()).toEqual(['a', 'b', 'c']);
});

it('lets another project overtake one that waits for its own response', async () => {
  const { reserve, started, clock } = open();
  void reserve('slow', SLOW, 600);
  void reserve('slow too', SLOW, 600);
  await clock.advanceBy(60_000);
  void reserve('other', OTHER, 100);
  expect(await started()).toEqual(['slow', 'other']);
});

it('serves projects round-robin', async () => {
  const { reserve, started, end } = open();
  for (const name of ['slow', 'slow too', 'slow again']) void reserve(name, SLOW, 600);
  void reserve('other', OTHER, 600);
  void reserve('third', THIRD, 600);
  for (const name of ['slow', 'other', 'third', 'slow too', 'slow again']) {
    expect((await started()).at(-1)).toBe(name);
    end(name);
  }
});

it('cuts off a response after half a minute if another project needs its memory', async () => {
  const { reserve, started, isCutOff, clock } = open();
  void reserve('slow', SLOW, 600);
  await clock.advanceBy(20_000);
  void reserve('other', OTHER, 600);
  await clock.advanceBy(9_999);
  expect([await started(), isCutOff('slow')]).toEqual([['slow'], false]);
  await clock.advanceBy(1);
  expect([await started(), isCutOff('slow')]).toEqual([['slow', 'other'], true]);
});

it('does not cut off a slow response while no other project needs its memory', async () => {
  const { reserve, started, isCutOff, clock } = open();
  void reserve('slow', SLOW, 600);
  void reserve('slow too', SLOW, 600);
  void reserve('other', OTHER, 100);
  await clock.advanceBy(3_600_000);
  expect([await started(), isCutOff('slow'), isCutOff('other')]).toEqual([['slow', 'other'], false, false]);
  void reserve('third', THIRD, 600);
  expect([await started(), isCutOff('slow')]).toEqual([['slow', 'other', 'third'], true]);
});

it('lets nobody overtake a large response that has waited for half a minute', async () => {
  const { reserve, started, end, clock } = open();
  void reserve('first', SLOW, 300);
  void reserve('large', OTHER, 600);
  await clock.advanceBy(29_999);
  void reserve('passes', THIRD, 100);
  expect(await started()).toEqual(['first', 'passes']);
  end('first');
  end('passes');
  expect(await started()).toEqual(['first', 'passes', 'large']);
});

it('releases memory that a response does not need, and the rest when it is sent', async () => {
  const { reserve, started, runWithMemory } = open();
  const made = Promise.withResolvers<ApiResponse>();
  const held = runWithMemory('slow', SLOW, 600, () => made.promise);
  void reserve('other', OTHER, 600);
  expect(await started()).toEqual(['slow']);
  made.resolve({ status: 200, json: 'x'.repeat(100) });
  const { onSent } = await held;
  expect(await started()).toEqual(['slow', 'other']);
  void reserve('third', THIRD, 100);
  expect(await started()).toEqual(['slow', 'other']);
  onSent?.();
  expect(await started()).toEqual(['slow', 'other', 'third']);
});

it('releases all memory if the handler fails', async () => {
  const { reserve, started, runWithMemory } = open();
  await expect(runWithMemory('slow', SLOW, 600, () => Promise.reject(new Error('no store')))).rejects.toThrow(
    'no store',
  );
  void reserve('other', OTHER, 700);
  expect(await started()).toEqual(['slow', 'other']);
});

it('reserves no memory for a client that has already disconnected', async () => {
  const queue = new ResponseQueue(800, new SimulatedClock());
  await expect(queue.reserve(SLOW, 5_000, AbortSignal.abort())).rejects.toThrow(ClientDisconnected);
  await queue.reserve(OTHER, 5_000, new AbortController().signal);
});

it('removes a client that disconnects while it waits', async () => {
  const { reserve, started, end, hangUp } = open();
  void reserve('slow', SLOW, 600);
  const gone = expect(reserve('gone', OTHER, 600)).rejects.toThrow(ClientDisconnected);
  void reserve('other', OTHER, 50);
  expect(await started()).toEqual(['slow']);
  hangUp('gone');
  await gone;
  expect(await started()).toEqual(['slow', 'other']);
  end('slow');
  expect(await started()).toEqual(['slow', 'other']);
});
