import { expect, it } from 'vitest';
import { type MemoryReservation, ResponseQueue } from '../../src/api/edge/response-queue.ts';
import { ClientDisconnected } from '../../src/api/requests/request-body.ts';
import type { ApiResponse } from '../../src/api/response.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

const SLOW = 1;
const OTHER = 2;
const THIRD = 3;

/** Room for 800 bytes; a project alone may have 700. */
function open() {
  const clock = new SimulatedClock();
  const turns = new ResponseQueue(800, clock);
  const begun = new Map<string, MemoryReservation | undefined>();
  const hangUps = new Map<string, AbortController>();
  return {
    clock,
    /** Asks for room for an answer, whose client then does nothing until the test says so. */
    ask(name: string, projectId: number, bytes: number): Promise<void> {
      const hangUp = new AbortController();
      hangUps.set(name, hangUp);
      return turns.reserve(projectId, bytes, hangUp.signal).then((turn) => {
        begun.set(name, turn);
        // As the connection does when it is closed.
        turn.cutOff.addEventListener('abort', () => turn.release());
      });
    },
    /** Makes an answer with `make` once there is room. */
    hold(name: string, projectId: number, bytes: number, make: () => Promise<ApiResponse>): Promise<ApiResponse> {
      return turns.runWithMemory(projectId, bytes, new AbortController().signal, () => {
        begun.set(name, undefined);
        return make();
      });
    },
    end: (name: string) => begun.get(name)?.release(),
    hangUp: (name: string) => hangUps.get(name)?.abort(),
    /** Names of the answers that have had their turn. */
    begun: async (): Promise<string[]> => {
      await new Promise(setImmediate);
      return [...begun.keys()];
    },
    isCutOff: (name: string) => begun.get(name)?.cutOff.aborted,
  };
}

it('lets as many be in memory together as fit, and the others of the project follow in order', async () => {
  const { ask, begun, end } = open();
  for (const [name, bytes] of Object.entries({ a: 400, b: 300, c: 500, d: 100 })) void ask(name, SLOW, bytes);
  expect(await begun()).toEqual(['a', 'b']);
  end('b');
  expect(await begun()).toEqual(['a', 'b']); // c does not fit, and d came after it
  end('a');
  expect(await begun()).toEqual(['a', 'b', 'c', 'd']);
});

it('lets one that is larger than all there is be in memory alone', async () => {
  const { ask, begun, end } = open();
  for (const [name, bytes] of Object.entries({ a: 10, b: 5_000, c: 20 })) void ask(name, SLOW, bytes);
  expect(await begun()).toEqual(['a']);
  end('a');
  expect(await begun()).toEqual(['a', 'b']);
  end('b');
  expect(await begun()).toEqual(['a', 'b', 'c']);
});

it('lets another project pass one that waits for an answer of its own', async () => {
  const { ask, begun, clock } = open();
  void ask('slow', SLOW, 600);
  void ask('slow too', SLOW, 600);
  await clock.advanceBy(60_000);
  void ask('other', OTHER, 100);
  expect(await begun()).toEqual(['slow', 'other']);
});

it('gives a project whose turn is over the next one after the others', async () => {
  const { ask, begun, end } = open();
  for (const name of ['slow', 'slow too', 'slow again']) void ask(name, SLOW, 600);
  void ask('other', OTHER, 600);
  void ask('third', THIRD, 600);
  for (const name of ['slow', 'other', 'third', 'slow too', 'slow again']) {
    expect((await begun()).at(-1)).toBe(name);
    end(name);
  }
});

it('cuts off an answer that has had half a minute when another project needs its room', async () => {
  const { ask, begun, isCutOff, clock } = open();
  void ask('slow', SLOW, 600);
  await clock.advanceBy(20_000);
  void ask('other', OTHER, 600);
  await clock.advanceBy(9_999);
  expect([await begun(), isCutOff('slow')]).toEqual([['slow'], false]);
  await clock.advanceBy(1);
  expect([await begun(), isCutOff('slow')]).toEqual([['slow', 'other'], true]);
});

it('leaves a slow answer alone while no other project needs its room', async () => {
  const { ask, begun, isCutOff, clock } = open();
  void ask('slow', SLOW, 600);
  void ask('slow too', SLOW, 600);
  void ask('other', OTHER, 100);
  await clock.advanceBy(3_600_000);
  expect([await begun(), isCutOff('slow'), isCutOff('other')]).toEqual([['slow', 'other'], false, false]);
  void ask('third', THIRD, 600);
  expect([await begun(), isCutOff('slow')]).toEqual([['slow', 'other', 'third'], true]);
});

it('lets nobody pass a large one that has waited for half a minute', async () => {
  const { ask, begun, end, clock } = open();
  void ask('first', SLOW, 300);
  void ask('large', OTHER, 600);
  await clock.advanceBy(29_999);
  void ask('passes', THIRD, 100);
  expect(await begun()).toEqual(['first', 'passes']);
  end('first');
  end('passes');
  expect(await begun()).toEqual(['first', 'passes', 'large']);
});

it('gives back what an answer turns out not to need, and the rest when it is sent', async () => {
  const { ask, begun, hold } = open();
  const made = Promise.withResolvers<ApiResponse>();
  const held = hold('slow', SLOW, 600, () => made.promise);
  void ask('other', OTHER, 600);
  expect(await begun()).toEqual(['slow']);
  made.resolve({ status: 200, json: 'x'.repeat(100) });
  const { onSent } = await held;
  expect(await begun()).toEqual(['slow', 'other']);
  void ask('third', THIRD, 100);
  expect(await begun()).toEqual(['slow', 'other']);
  onSent?.();
  expect(await begun()).toEqual(['slow', 'other', 'third']);
});

it('gives all back when there is no answer', async () => {
  const { ask, begun, hold } = open();
  await expect(hold('slow', SLOW, 600, () => Promise.reject(new Error('no store')))).rejects.toThrow('no store');
  void ask('other', OTHER, 700);
  expect(await begun()).toEqual(['slow', 'other']);
});

it('takes no room for a client that has hung up already', async () => {
  const turns = new ResponseQueue(800, new SimulatedClock());
  await expect(turns.reserve(SLOW, 5_000, AbortSignal.abort())).rejects.toThrow(ClientDisconnected);
  await turns.reserve(OTHER, 5_000, new AbortController().signal);
});

it('forgets a client that hangs up before its turn', async () => {
  const { ask, begun, end, hangUp } = open();
  void ask('slow', SLOW, 600);
  const gone = expect(ask('gone', OTHER, 600)).rejects.toThrow(ClientDisconnected);
  void ask('other', OTHER, 50);
  expect(await begun()).toEqual(['slow']);
  hangUp('gone');
  await gone;
  expect(await begun()).toEqual(['slow', 'other']);
  end('slow');
  expect(await begun()).toEqual(['slow', 'other']);
});
