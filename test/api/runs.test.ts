import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openRunWorld, type RunWorld } from './support/run-world.ts';
import { OTHER_TOKEN } from './support/world.ts';

let world: RunWorld;
beforeEach(async () => {
  world = await openRunWorld();
});
afterEach(() => world.close());

const isActive = async (runId: string): Promise<boolean> => (await world.get(`workflows/runs/${runId}`)).status === 200;

describe('the journal of a run (contract W 17.2)', () => {
  it('is read while another project takes its time over large ones', async () => {
    const { storeOf, readJournal } = world.engine;
    const journalBytes = async ({ id }: { id: string }) => (id === 'wfr_slow' ? 50 * 1024 * 1024 : 3);
    vi.spyOn(world.engine, 'storeOf').mockImplementation((projectId) => {
      const own = storeOf.call(world.engine, projectId);
      return { ...own, runs: { ...own.runs, journalBytes } };
    });
    const { promise: isOver, resolve: end } = Promise.withResolvers<void>();
    vi.spyOn(world.engine, 'readJournal').mockImplementation(async (...args) => {
      if (args[1] === 'wfr_slow') await isOver;
      return readJournal.apply(world.engine, args);
    });
    const slow = [1, 2].map(() => world.get('workflows/runs/wfr_slow'));
    const headers = { authorization: `Bearer ${OTHER_TOKEN}` };
    expect((await world.ask({ method: 'GET', url: '/v2/workflows/runs/wfr_a', headers })).status).toBe(404);
    end();
    await Promise.all(slow);
  });
});

describe('the end of a run (contract W 12)', () => {
  it.each(['upstash', 'waypost'])('concerns only the run that began then, where %s- names the time', async (prefix) => {
    await world.trigger('wfr_a');
    const created = (value: string) => ({ [`${prefix}-workflow-createdat`]: value });
    expect((await world.delete('workflows/runs/wfr_a', created('1'))).status).toBe(404);
    expect((await world.delete('workflows/runs/wfr_a?cancel=false', created('1'))).status).toBe(200);
    expect(await isActive('wfr_a')).toBe(true);
    // Libraries that were not told it send this.
    expect((await world.delete('workflows/runs/wfr_a', created('NaN'))).status).toBe(200);
    expect(await isActive('wfr_a')).toBe(false);
  });

  it('refuses a result above the limit of a message', async () => {
    await world.trigger('wfr_a');
    expect((await world.delete('workflows/runs/wfr_a?cancel=false', {}, 'x'.repeat(100_001))).status).toBe(413);
    expect(await isActive('wfr_a')).toBe(true);
  });
});

describe('a bulk cancel (contract W 17.2)', () => {
  const cancel = async (query: string, payload?: string): Promise<number> => {
    const reply = await world.delete(`workflows/runs${query}`, {}, payload);
    expect(reply.status, reply.text).toBe(200);
    return reply.json.cancelled;
  };

  it('ends the run whose id has a comma, and not the one whose id is a part of it', async () => {
    await world.trigger('wfr_tenant7');
    await world.trigger('wfr_tenant7,42');
    expect(await cancel('?workflowRunIds=wfr_tenant7%2C42')).toBe(1);
    expect([await isActive('wfr_tenant7'), await isActive('wfr_tenant7,42')]).toEqual([true, false]);
  });

  it('tells the parents of runs that were invoked', async () => {
    await world.trigger('wfr_parent');
    await world.invoke('wfr_parent', 1, 'wfr_child');
    expect(await cancel('?workflowRunIds=wfr_child')).toBe(1);
    await world.settled();
    const told = JSON.parse(world.of('wfr_parent').at(-1)?.entries.at(-1) ?? '{}');
    expect(JSON.parse(told.out)).toEqual({ isCanceled: true, isFailed: false });
  });
});
