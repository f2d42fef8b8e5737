/** Failed runs: listed, resumed, restarted, their failure callback repeated, and deleted (contract W 21). */
import { describe, expect } from 'vitest';
import { LIBRARIES, LIBRARY, newestClient, oldestClient, type Terms } from './support/library.ts';
import type { Run } from './support/run.ts';
import { scenario } from './support/scenario.ts';
import type { Service } from './support/service.ts';

/** A workflow whose second step fails until it is mended; notes which steps were executed. */
function openBroken(service: Service, library = LIBRARY, terms: Terms<number> = {}) {
  const state = { isMended: false, executed: [] as string[] };
  const workflow = service.workflow<number>(
    library,
    '/broken',
    async (context) => {
      const one = await context.run('one', () => {
        state.executed.push('one');
        return context.requestPayload * 10;
      });
      const two = await context.run('two', () => {
        state.executed.push('two');
        if (!state.isMended) throw new Error('broken');
        return one + 1;
      });
      return context.run('three', () => {
        state.executed.push('three');
        return two * 2;
      });
    },
    { retries: 0, ...terms },
  );
  return { ...workflow, state };
}

async function dlqIdOf(run: Run): Promise<string> {
  const { workflowState, dlqId } = await run.finished();
  expect(workflowState).toBe('RUN_FAILED');
  if (dlqId === undefined) throw new Error('no dlqId');
  return dlqId;
}

describe.each(LIBRARIES)('with $name', (library) => {
  const clientOf = library === LIBRARY ? newestClient : oldestClient;

  scenario('resumes a run where it failed', async ({ service }) => {
    const broken = openBroken(service, library);
    const failed = await broken.trigger({ body: 4, label: 'kept' });
    const dlqId = await dlqIdOf(failed);
    const before = service.app.calls('/broken').length;
    const client = clientOf(service.env);
    const { messages } = await client.dlq.list();
    expect(messages).toEqual([
      expect.objectContaining({
        ...{ dlqId, workflowRunId: failed.id, workflowUrl: broken.url, responseStatus: 500, label: 'kept' },
        responseBody: expect.stringContaining('broken'),
      }),
    ]);
    broken.state.isMended = true;
    const resumed = service.run((await client.dlq.resume({ dlqId })).workflowRunId, library);
    expect(resumed.id).not.toBe(failed.id);
    expect(await resumed.result()).toBe(82);
    expect(broken.state.executed).toEqual(['one', 'two', 'two', 'three']);
    // The failed delivery once more, and what comes after it.
    expect(service.app.calls('/broken').length - before).toBe(3);
    expect(await resumed.log()).toMatchObject({ label: 'kept' });
    expect(await resumed.groups()).toEqual(await stepsOf(['one', 'two', 'three']));
    expect((await failed.log()).workflowState).toBe('RUN_FAILED');
    expect((await client.dlq.list()).messages).toEqual([]);
  });

  scenario('begins a run anew', async ({ service }) => {
    const broken = openBroken(service, library);
    const dlqId = await dlqIdOf(await broken.trigger({ body: 5 }));
    const before = service.app.calls('/broken').length;
    broken.state.isMended = true;
    const { workflowRunId } = await clientOf(service.env).dlq.restart({ dlqId });
    expect(await service.run(workflowRunId, library).result()).toBe(102);
    expect(broken.state.executed).toEqual(['one', 'two', 'one', 'two', 'three']);
    expect(service.app.calls('/broken').length - before).toBe(4);
  });

  scenario('tells the failure function once more', async ({ service }) => {
    let isDeaf = true;
    const told: string[] = [];
    const broken = openBroken(service, library, {
      failureFunction: async ({ failResponse }) => {
        if (isDeaf) throw new Error('deaf');
        told.push(failResponse);
        return 'heard';
      },
    });
    const run = await broken.trigger({ body: 6 });
    const dlqId = await dlqIdOf(run);
    expect((await run.log()).failureFunction?.state).toBe('CALLBACK_FAIL');
    isDeaf = false;
    const again = await clientOf(service.env).dlq.retryFailureFunction({ dlqId });
    expect(again.workflowRunId).toBe(run.id);
    await service.pass(60_000);
    expect(told).toEqual(['broken']);
    const { failureFunction } = await run.log();
    expect(failureFunction).toMatchObject({
      state: 'CALLBACK_SUCCESS',
      responseBody: expect.stringContaining('heard'),
    });
  });
});

async function stepsOf(names: string[]): Promise<string[]> {
  return ['Initial init: STEP_SUCCESS', ...names.map((name) => `Run ${name}: STEP_SUCCESS`)];
}

scenario('resumes a parallel group: only the branch that is missing', async ({ service }) => {
  let isMended = false;
  const executed: string[] = [];
  const path = service.workflow(
    LIBRARY,
    '/group',
    async (context) => {
      const results = await Promise.all(
        ['a', 'b', 'c'].map((name) =>
          context.run(name, async () => {
            executed.push(name);
            if (name !== 'b' || isMended) return name;
            // Its own plan, those of the others, and their results.
            await service.app.reached('/group', 6);
            throw new Error('broken');
          }),
        ),
      );
      return context.run('join', () => results.join(''));
    },
    { retries: 0 },
  );
  const dlqId = await dlqIdOf(await path.trigger());
  isMended = true;
  const { workflowRunId } = await newestClient(service.env).dlq.resume({ dlqId });
  expect(await service.run(workflowRunId, LIBRARY).result()).toBe('abc');
  expect(executed.toSorted()).toEqual(['a', 'b', 'b', 'c']);
});

scenario('resumes with other retries, and many at once', async ({ service }) => {
  const broken = openBroken(service);
  for (const body of [1, 2, 3]) await dlqIdOf(await broken.trigger({ body, label: body === 3 ? 'apart' : 'same' }));
  const client = newestClient(service.env);
  const before = service.app.calls('/broken').length;
  const { workflowRuns } = await client.dlq.resume({ filter: { label: 'same' } }, { retries: 1 });
  expect(workflowRuns).toHaveLength(2);
  for (const { workflowRunId } of workflowRuns) {
    expect((await service.run(workflowRunId, LIBRARY).finished()).workflowState).toBe('RUN_FAILED');
  }
  // Each twice, and each tells of its failure.
  expect(service.app.calls('/broken').length - before).toBe(6);
  broken.state.isMended = true;
  const restarted = await client.dlq.restart({ all: true });
  expect(restarted.workflowRuns).toHaveLength(3);
  const results: unknown[] = [];
  for (const { workflowRunId } of restarted.workflowRuns) {
    results.push(await service.run(workflowRunId, LIBRARY).result());
  }
  expect(results.toSorted()).toEqual([22, 42, 62]);
});

scenario('deletes what failed: one, some, and all', async ({ service }) => {
  const broken = openBroken(service);
  const ids: string[] = [];
  for (const body of [1, 2, 3, 4]) ids.push(await dlqIdOf(await broken.trigger({ body })));
  const client = newestClient(service.env);
  expect(await client.dlq.delete(ids[0] ?? '')).toMatchObject({ deleted: 1 });
  expect(await client.dlq.delete([ids[0] ?? '', ids[1] ?? ''])).toMatchObject({ deleted: 1 });
  expect(await client.dlq.delete({ filter: { workflowUrl: service.at('/else') } })).toMatchObject({ deleted: 0 });
  expect(await client.dlq.delete({ all: true })).toMatchObject({ deleted: 2 });
  expect((await client.dlq.list()).messages).toEqual([]);
});
