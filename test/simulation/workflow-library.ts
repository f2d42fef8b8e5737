/**
 * A small workflow library: reads deliveries, and finds the next action of a program from its recorded steps. It is written
 * for the simulation, so that the service is not tested only with the library it was made for.
 */
import { requestHead } from '../../src/delivery/request-head.ts';
import type { Claimed } from '../../src/engine/model.ts';
import type { Program, Step } from './workflow-programs.ts';

/** One entry of a journal, as it is delivered. */
export interface DeliveredEntry {
  messageId: string;
  body: string;
  callType: string;
}

/** A request as the endpoint sees it. */
export interface Delivery {
  headers: ReadonlyMap<string, string>;
  body: Uint8Array;
  messageId: string;
  runId: string;
  createdAtMs: number;
}

export interface RecordedStep {
  stepId: number;
  stepName: string;
  stepType: string;
  concurrent: number;
  targetStep?: number;
  out?: string;
  waitTimeout?: boolean;
}

/** The next action of a program. */
export type NextAction =
  | { kind: 'execute'; step: Step; stepId: number; concurrent: number }
  | { kind: 'plan'; steps: { step: Step; stepId: number }[] }
  /** The program waits for other results of the group. */
  | { kind: 'nothing' }
  | { kind: 'end'; outcomes: string[] };

export function deliveryOf(claimed: Claimed): Delivery {
  const lines = requestHead({ claimed, signature: 'simulated' });
  const headers = new Map<string, string>();
  for (let at = 0; at + 1 < lines.length; at += 2) headers.set((lines[at] ?? '').toLowerCase(), lines[at + 1] ?? '');
  return {
    headers,
    body: claimed.deliveredBody ?? claimed.message.body,
    messageId: headers.get('upstash-message-id') ?? '',
    runId: headers.get('upstash-workflow-runid') ?? '',
    createdAtMs: Number(headers.get('upstash-workflow-createdat')),
  };
}

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8');
}

/** Throws if `body` is not a journal. */
export function readEntries(body: Uint8Array): DeliveredEntry[] {
  return JSON.parse(textOf(body)) as DeliveredEntry[];
}

/** The name of the run's program, from its first entry. */
export function payloadOf(entries: readonly DeliveredEntry[]): { program: string } {
  return JSON.parse(Buffer.from(entries[0]?.body ?? '', 'base64').toString('utf8')) as { program: string };
}

/** The steps after the first entry: plans and results, without calls. */
export function readSteps(entries: readonly DeliveredEntry[]): RecordedStep[] {
  return entries
    .slice(1)
    .filter(({ callType }) => callType === 'step')
    .map(({ body }) => JSON.parse(Buffer.from(body, 'base64').toString('utf8')) as RecordedStep);
}

/** Whether the last step repeats an earlier step, from which another call has already continued. */
export function isRepeated(steps: readonly RecordedStep[]): boolean {
  const last = steps.at(-1);
  return steps
    .slice(0, -1)
    .some((step) => step.stepId === last?.stepId && (step.targetStep ?? 0) === (last.targetStep ?? 0));
}

/** The next action of the program when `steps` are recorded and the last of them is being delivered. */
export function nextOf(program: Program, steps: readonly RecordedStep[]): NextAction {
  const results = new Map<number, RecordedStep>();
  for (const step of steps) if (step.stepId > 0 && !results.has(step.stepId)) results.set(step.stepId, step);
  const last = steps.at(-1);
  const outcomes: string[] = [];
  let firstId = 1;
  for (const stage of program.stages) {
    const branches = stage.kind === 'group' ? stage.branches : [stage];
    const numbered = branches.map((step, index) => ({ step, stepId: firstId + index }));
    firstId += branches.length;
    const recorded = numbered.flatMap(({ stepId }) => results.get(stepId) ?? []);
    if (recorded.length === branches.length) {
      outcomes.push(...recorded.map((step, index) => outcomeOf(step, branches[index]?.name)));
      continue;
    }
    const [only] = numbered;
    if (stage.kind !== 'group' && only) return { kind: 'execute', ...only, concurrent: 1 };
    const planned = numbered.find(({ stepId }) => last?.stepId === 0 && last.targetStep === stepId);
    if (planned) return { kind: 'execute', ...planned, concurrent: branches.length };
    const isBegun = steps.some(({ targetStep = 0 }) => numbered.some(({ stepId }) => stepId === targetStep));
    return isBegun ? { kind: 'nothing' } : { kind: 'plan', steps: numbered };
  }
  return { kind: 'end', outcomes };
}

/** The value that the program receives from a recorded step as the result of the step `name`. */
export function outcomeOf({ stepName, stepType, out, waitTimeout }: RecordedStep, name = stepName): string {
  return `${name} ${stepType} ${waitTimeout === true ? 'timed out' : (out ?? '')}`;
}
