/** With what does a call go on whose checkpoint is saved? The whole of it: test/conformance/checkpoints/lingering.ts. */
import { expect, test } from 'vitest';
import { Calls } from '../../src/engine/calls/calls.ts';
import type { CheckpointCommand } from '../../src/engine/calls/commands.ts';
import { nextAfter } from '../../src/engine/calls/continuation.ts';
import type { EngineContext } from '../../src/engine/context.ts';
import { ActiveRuns } from '../../src/engine/runs/active-runs.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import type { Run } from '../../src/workflow/model.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { claimed, message, NOW_MS } from './fixtures.ts';

const RUN = { projectId: 1, id: 'wfr_a', key: 1 } as Run;

test('with nothing where the store cannot say whether its run goes on: the checkpoint stays saved', async () => {
  const settings = {
    dialect: 'upstash' as const,
    maxRetries: 0,
    run: {
      key: 1,
      id: 'wfr_a',
      createdAtMs: NOW_MS,
      url: 'https://a.example/wf',
      callType: 'step' as const,
      features: [],
    },
  };
  const call = new Calls().begin(claimed({ message: message({ settings }) }), 0);
  if (!call) throw new Error('the endpoint may send checkpoints');
  call.run = RUN;
  const findActiveRun = () => Promise.reject(new StoreUnavailable('the database is away'));
  const active = new ActiveRuns({ runs: { findActiveRun } });
  const context = { active, clock: new SimulatedClock() } as unknown as EngineContext;
  const command = { lingerMs: 1_000 } as CheckpointCommand;
  const around = { call, arrivals: [], done: [], failed: [], hold: () => {} };
  await expect(nextAfter(context, command, around)).resolves.toBeUndefined();
});
