/** A run changes from one library to the other at any step: ours continues within a call, the official one gets a new call. */
import { describe, expect } from 'vitest';
import { LIBRARY, type Program } from './support/library.ts';
import { scenario } from './support/scenario.ts';
import type { Service, Workflow } from './support/service.ts';

interface Step {
  stepId: number;
  stepName: string;
  stepType: string;
  concurrent: number;
  targetStep?: number;
  out?: string;
}

interface Entry {
  token?: string;
}

/** A call under way, of an endpoint that speaks the wire of checkpoints by hand. */
class Call {
  readonly steps: Step[];
  token: string;
  readonly #service: Service;

  private constructor(service: Service, token: string, steps: Step[]) {
    this.#service = service;
    this.token = token;
    this.steps = steps;
  }

  static async of(service: Service, request: Request): Promise<Call> {
    const entries = (await request.json()) as { body: string; callType: string }[];
    const texts = entries.slice(1).map(({ body }) => Buffer.from(body, 'base64').toString());
    const token = request.headers.get('upstash-workflow-checkpoint') ?? '';
    return new Call(
      service,
      token,
      texts.map((text) => JSON.parse(text) as Step),
    );
  }

  /** Keeps the result of the next step, and goes on with it. */
  async run(stepName: string, value: unknown): Promise<void> {
    const stepId = this.steps.filter((step) => step.stepId > 0).length + 1;
    const step: Step = { stepId, stepName, stepType: 'Run', concurrent: 1, out: JSON.stringify(value) };
    const [entry] = await this.append([this.token], [step]);
    this.steps.push(step);
    this.token = entry?.token ?? '';
  }

  async append(done: string[], steps: Step[]): Promise<Entry[]> {
    const { entries } = await this.#service.expectOk('POST', '/v2/waypost/checkpoints', {
      headers: { authorization: `Bearer ${done[0]}` },
      body: JSON.stringify({ done, append: steps.map((step) => ({ step })) }),
    });
    return entries;
  }

  /** What a step has resulted in, as the program reads it. */
  resultOf(name: string): unknown {
    const step = this.steps.find(({ stepName, stepId }) => stepName === name && stepId > 0);
    return step?.out === undefined ? undefined : JSON.parse(step.out);
  }

  end(value: unknown): Response {
    const headers = { 'Upstash-Workflow-Sdk-Version': '1', 'Upstash-Workflow-End': this.token };
    return new Response(JSON.stringify(value), { headers });
  }
}

const CRASHED = (): Response => new Response('', { status: 500, headers: { 'Upstash-Workflow-Sdk-Version': '1' } });

const TERMS = { retries: 3, retryDelay: '1000' };

const GROUPS = [
  'Initial init: STEP_SUCCESS',
  'Run one: STEP_SUCCESS',
  'Run two: STEP_SUCCESS',
  '[Run left: STEP_SUCCESS, Run right: STEP_SUCCESS]',
  'Run sum: STEP_SUCCESS',
];

/** Serves those deliveries (from 1) by hand that `byHand` answers, and with the official library the others. */
function shared(service: Service, byHand: (call: Call, nth: number) => Promise<Response | undefined>): Workflow {
  const program: Program<string> = async (context) => {
    const one = await context.run('one', () => 1);
    const two = await context.run('two', () => one + 1);
    const [left, right] = await Promise.all([
      context.run('left', () => two * 10),
      context.run('right', () => two * 100),
    ]);
    return context.run('sum', () => left + right);
  };
  const official = LIBRARY.serve(program, TERMS, service.env);
  let nth = 0;
  service.app.workflow('/path', async (request) => {
    nth += 1;
    return (await byHand(await Call.of(service, request.clone()), nth)) ?? official(request);
  });
  return service.triggered(LIBRARY, '/path', TERMS);
}

describe('a run goes over', () => {
  scenario('to the official library after a crash between two steps', async ({ service }) => {
    const path = shared(service, async (call, nth) => {
      if (nth > 1) return undefined;
      await call.run('one', 1);
      await call.run('two', 2);
      return CRASHED();
    });
    const run = await path.trigger();
    expect(await run.result()).toBe(220);
    expect(await run.groups()).toEqual(GROUPS);
  });

  scenario('to the official library in the middle of a group', async ({ service }) => {
    const path = shared(service, async (call, nth) => {
      if (nth > 1) return undefined;
      await call.run('one', 1);
      await call.run('two', 2);
      const plans = ['left', 'right'].map((stepName, at) => {
        return { stepId: 0, stepName, stepType: 'Run', concurrent: 2, targetStep: 3 + at };
      });
      const [left, right] = await call.append([call.token], plans);
      const result = { stepId: 4, stepName: 'right', stepType: 'Run', concurrent: 2, out: '200' };
      const [held] = await call.append([right?.token ?? ''], [result]);
      expect([left?.token, held?.token]).toEqual([expect.any(String), expect.any(String)]);
      return CRASHED();
    });
    const run = await path.trigger();
    expect(await run.result()).toBe(220);
    expect(await run.groups()).toEqual(GROUPS);
  });

  scenario('from the official library, and ends within a call', async ({ service }) => {
    const path = shared(service, async (call) => {
      const [left, right] = [call.resultOf('left'), call.resultOf('right')];
      if (left === undefined || right === undefined) return undefined;
      await call.run('sum', Number(left) + Number(right));
      return call.end(call.resultOf('sum'));
    });
    const run = await path.trigger();
    expect(await run.result()).toBe(220);
    expect(await run.groups()).toEqual(GROUPS);
  });
});
