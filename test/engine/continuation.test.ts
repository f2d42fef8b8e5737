/**
 * How a call continues after its checkpoint is saved. Most statements about this are in
 * test/conformance/checkpoints/idle-calls.ts.
 */
import { expect, test } from 'vitest';
import { Calls } from '../../src/engine/calls/calls.ts';
import type { CheckpointCommand } from '../../src/engine/calls/commands.ts';
import { continueCall } from '../../src/engine/calls/continuation.ts';
import type { EngineContext } from '../../src/engine/context.ts';
import { ActiveRuns } from '../../src/engine/runs/active-runs.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import type { Run } from '../../src/workflow/model.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { claimed, message, NOW_MS } from './fixtures.ts';

const RUN = { projectId: 1, id: 'wfr_a', key: 1 } as Run;

test('does not wait for a message when the store cannot return whether the run has ended; the checkpoint stays saved', async () => {
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
  const call = new Calls().start(claimed({ message: message({ settings }) }), 0);
  if (!call) throw new Error('the endpoint may send checkpoints');
  call.run = RUN;
  const findActiveRun = () => Promise.reject(new StoreUnavailable('the database is unavailable'));
  const active = new ActiveRuns({ runs: { findActiveRun } });
  const context = { active, clock: new SimulatedClock() } as unknown as EngineContext;
  const command = { lingerMs: 1_000 } as CheckpointCommand;
  const inCall = { call, claimedForIdleCall: [], done: [], failed: [], add: () => {} };
  await expect(continueCall(context, command, inCall)).resolves.toBeUndefined();
});
