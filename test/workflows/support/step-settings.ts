/**
 * An endpoint that sends settings of single steps like the client library (contract W 6.6). No release of the library has them
 * yet, so this stands in for it: it supports sequential steps, and nothing else of the library.
 */
import type { WebHandler } from './app.ts';
import type { Environment } from './library.ts';

export interface StepSettings {
  flowControl?: { key: string; parallelism?: number; rate?: number; period?: number | `${number}m` };
  retries?: number;
  /** Expression, in milliseconds. */
  retryDelay?: string;
}

export interface StepWithSettings {
  name: string;
  settings?: StepSettings;
  run(): unknown;
}

export interface Program {
  steps: StepWithSettings[];
  /** It sees neither settings nor their mark on a delivery, as a library with a mistake. */
  isBlind?: true;
  /** Called when it has asked for a delivery with settings, before it answers. */
  asked?(): void;
}

/** Names of steps that ran although their settings did not come back as they were sent. */
export type Mismatches = string[];

const FEATURES = 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig';
const MARKS = { 'Upstash-Workflow-Sdk-Version': '1', 'Upstash-workflow-sdk': 'v1.4.0' };

/** Serves `program`; notes in `mismatches` of which steps the library would warn. */
export function serveSteps(program: Program, mismatches: Mismatches, env: Environment): WebHandler {
  return async (request) => {
    try {
      await new Delivery(request, env).goOn(program, await journalOf(request), mismatches);
      return Response.json({ finishCondition: 'success' }, { headers: MARKS });
    } catch (error) {
      return Response.json({ error: 'Error', message: String(error) }, { status: 500, headers: MARKS });
    }
  };
}

class Delivery {
  readonly #headers: Headers;
  readonly #env: Environment;

  constructor({ headers }: Request, env: Environment) {
    this.#headers = headers;
    this.#env = env;
  }

  async goOn({ steps, isBlind, asked }: Program, results: unknown[], mismatches: Mismatches): Promise<void> {
    const step = steps[results.length];
    if (step === undefined) return this.#end(results);
    const stepId = results.length + 1;
    if (isBlind || !this.#isUnder(step.settings)) {
      if (isBlind || this.#headers.get('upstash-workflow-step-config') !== 'true') {
        await this.#publish({ targetStep: stepId, invokeCount: 0 }, step.settings, { callType: 'stepConfig' });
        return asked?.();
      }
      mismatches.push(step.name);
    }
    const out = JSON.stringify(await step.run());
    // The delivery of the result is the one in which the next step runs.
    await this.#publish({ stepId, stepName: step.name, stepType: 'Run', out, concurrent: 1 }, steps[stepId]?.settings);
  }

  /** Whether the delivery is under what the step sets; what it does not set does not matter. */
  #isUnder({ flowControl, retries, retryDelay }: StepSettings = {}): boolean {
    const key = this.#headers.get('upstash-flow-control-key');
    const value = this.#headers.get('upstash-flow-control-value') ?? '';
    const wanted = flowControl && JSON.stringify([flowControl.key, limitsOf(valueSentFor(flowControl))]);
    return (
      (wanted === undefined || wanted === JSON.stringify([key, limitsOf(value)])) &&
      (retries === undefined || String(retries) === this.#headers.get('upstash-max-retries')) &&
      (retryDelay === undefined || retryDelay === this.#headers.get('upstash-retry-delay'))
    );
  }

  async #publish(body: object, settings: StepSettings = {}, { callType = 'step' } = {}): Promise<void> {
    const { flowControl, retries, retryDelay } = settings;
    const own = {
      ...(flowControl && {
        'Upstash-Flow-Control-Key': flowControl.key,
        'Upstash-Flow-Control-Value': valueSentFor(flowControl),
      }),
      ...(retries !== undefined && { 'Upstash-Retries': String(retries) }),
      ...(retryDelay !== undefined && { 'Upstash-Retry-Delay': retryDelay }),
    };
    const isForStep = Object.keys(own).length > 0;
    const url = this.#header('upstash-workflow-url');
    await this.#ask('POST', `/v2/publish/${url}`, JSON.stringify(body), {
      'Upstash-Workflow-Init': 'false',
      'Upstash-Workflow-RunId': this.#header('upstash-workflow-runid'),
      'Upstash-Workflow-Url': url,
      'Upstash-Workflow-CallType': callType,
      'Upstash-Workflow-Sdk-Version': '1',
      'Upstash-Forward-Upstash-Workflow-Sdk-Version': '1',
      'Upstash-Feature-Set': isForStep ? `${FEATURES},WF_StepConfig` : FEATURES,
      'Upstash-Content-Based-Deduplication': String(callType === 'stepConfig'),
      'Content-Type': 'application/json',
      ...own,
    });
  }

  async #end(results: unknown[]): Promise<void> {
    const runId = this.#header('upstash-workflow-runid');
    await this.#ask('DELETE', `/v2/workflows/runs/${runId}?cancel=false`, JSON.stringify(results), {});
  }

  async #ask(method: string, path: string, body: string, headers: Record<string, string>): Promise<void> {
    const { QSTASH_URL, QSTASH_TOKEN } = this.#env;
    const authorization = `Bearer ${QSTASH_TOKEN}`;
    const answer = await fetch(`${QSTASH_URL}${path}`, { method, body, headers: { authorization, ...headers } });
    // The library takes 400 to mean that the run is over.
    if (!answer.ok && answer.status !== 400) throw new Error(`${answer.status} ${await answer.text()}`);
  }

  #header(name: string): string {
    return this.#headers.get(name) ?? '';
  }
}

/** The results of the steps so far. */
async function journalOf(request: Request): Promise<unknown[]> {
  const entries = (await request.json()) as { body: string; callType: string }[];
  const steps = entries.filter(({ callType }) => callType === 'step').slice(1);
  return steps.map(({ body }) => JSON.parse(JSON.parse(Buffer.from(body, 'base64').toString()).out));
}

/** As the library writes it, which is not as it comes back. */
function valueSentFor({ parallelism, rate, period }: NonNullable<StepSettings['flowControl']>): string {
  const items: string[] = [];
  if (parallelism !== undefined) items.push(`parallelism=${parallelism}`);
  if (rate !== undefined) items.push(`rate=${rate}`);
  if (period !== undefined) items.push(`period=${typeof period === 'number' ? `${period}s` : period}`);
  return items.join(', ');
}

/** The limits in a value, however they are written; a period that is left out is one second. */
function limitsOf(value: string): object {
  const items = new Map(value.split(',').map((item) => item.trim().split('=', 2) as [string, string]));
  const [, count, unit] = /^(\d+)([sm]?)$/.exec(items.get('period') ?? '1') ?? [];
  return {
    parallelism: Number(items.get('parallelism') ?? 0),
    rate: Number(items.get('rate') ?? 0),
    periodS: Number(count) * (unit === 'm' ? 60 : 1),
  };
}
