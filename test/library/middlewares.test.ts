/** When a middleware is initialised. */
import { expect, it } from 'vitest';
import { WorkflowMiddleware } from '../../packages/workflow/src/index.ts';

it('a middleware whose init throws is made at the next event', async () => {
  let calls = 0;
  const callbacks = {};
  const middleware = new WorkflowMiddleware({
    name: 'late',
    init: () => {
      calls += 1;
      if (calls === 1) throw new Error('not yet');
      return callbacks;
    },
  });
  await expect(middleware.callbacks()).rejects.toThrow('not yet');
  expect(await middleware.callbacks()).toBe(callbacks);
});

it('a middleware is made once', async () => {
  let calls = 0;
  const init = () => {
    calls += 1;
    return {};
  };
  const middleware = new WorkflowMiddleware({ name: 'once', init });
  await Promise.all([middleware.callbacks(), middleware.callbacks()]);
  await middleware.callbacks();
  expect(calls).toBe(1);
});
