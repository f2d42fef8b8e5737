/** A run as scenarios see it: its end, and both views of its log in short form. */
import type { WorkflowRunLog } from '@upstash/workflow';
import { expect } from 'vitest';
import type { Json } from '../../api/support/world.ts';
import { isWithOurs } from '../../library/ours.ts';
import type { Library } from './library.ts';
import type { Service } from './service.ts';

const HOUR_MS = 3_600_000;

/** Events of a page; more than a scenario with hundreds of steps has on one. */
const PAGE = 1000;

export class Run {
  readonly id: string;
  readonly #service: Service;
  readonly #library: Library;

  constructor(service: Service, library: Library, id: string) {
    this.id = id;
    this.#service = service;
    this.#library = library;
  }

  /** The run as the library lists it: the newest one of this id. */
  async log(): Promise<WorkflowRunLog> {
    const [run] = await this.#library.runs(this.id, this.#service.env);
    if (run === undefined) throw new Error(`${this.id} is not in the log`);
    return run;
  }

  /** Lets time pass until the run has ended. */
  async ended(): Promise<WorkflowRunLog> {
    // Without the bodies, of which some scenarios have many or large ones.
    const query = new URLSearchParams({ workflowRunId: this.id, trimBody: '0' });
    await this.#service.until(`the end of ${this.id}`, async () => {
      const { runs } = await this.#service.expectOk('GET', `/v2/workflows/logs?${query}`);
      return runs[0].workflowState !== 'RUN_STARTED';
    });
    return this.log();
  }

  /** As `ended`, and lets another hour pass, in which whatever should not be would come out. */
  async finished(): Promise<WorkflowRunLog> {
    await this.ended();
    await this.#service.pass(HOUR_MS);
    return this.log();
  }

  /** Its result, of which `finished` is awaited. Throws when the run did not succeed. */
  async result(): Promise<unknown> {
    const run = await this.finished();
    const { workflowState, workflowRunResponse } = run;
    expect(workflowState, groupsOf(run).join('\n')).toBe('RUN_SUCCESS');
    return workflowRunResponse === undefined ? undefined : JSON.parse(workflowRunResponse);
  }

  /** All events of the flat view, oldest first. */
  async events(): Promise<Json[]> {
    const events: Json[] = [];
    let cursor: string | undefined;
    do {
      const query = new URLSearchParams({ workflowRunId: this.id, count: String(PAGE), ...(cursor && { cursor }) });
      const page = await this.#service.expectOk('GET', `/v2/workflows/messageLogs?${query}`);
      events.push(...page.events);
      cursor = page.cursor;
    } while (cursor !== undefined);
    return events.reverse();
  }

  /**
   * The flat view in short: the states of the run, then a line for each message in the order in which they were made,
   * with its states. Which of two messages went on first is not in it: that is the network's business.
   */
  async flat(): Promise<string[]> {
    const events = await this.events();
    const messages = new Map<string, string[]>();
    const states: string[] = [];
    for (const { state, stepInfo } of events) {
      if (stepInfo === undefined) states.push(state);
      else if (messages.has(stepInfo.messageId)) messages.get(stepInfo.messageId)?.push(state);
      else messages.set(stepInfo.messageId, [`${nameOf(stepInfo)}:`, state]);
    }
    const times = events.map(({ time }) => time);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    return [states.join(' '), ...[...messages.values()].map((line) => withoutHeld(line.join(' ')))];
  }

  /** The grouped view in short: a line for each group. */
  async groups(): Promise<string[]> {
    return groupsOf(await this.log());
  }
}

/** As if no call of ours had held the message and given it back, which makes it active twice. */
function withoutHeld(line: string): string {
  return isWithOurs(import.meta.url) ? line.replaceAll('ACTIVE ACTIVE', 'ACTIVE') : line;
}

/** A line for each group: `Run a: STEP_SUCCESS`, those of a parallel one in brackets, `next: STEP_RETRY (2 errors)`. */
function groupsOf({ steps }: WorkflowRunLog): string[] {
  return steps.map((group) => {
    const lines = (group.steps as Json[]).map((step) => {
      const errors = step.errors === undefined ? '' : ` (${step.errors.length} errors)`;
      const name = group.type === 'next' ? 'next' : `${step.stepType} ${step.stepName}`;
      return `${name}: ${step.state}${errors}`;
    });
    return group.type === 'parallel' ? `[${lines.join(', ')}]` : lines.join(', ');
  });
}

function nameOf({ stepName, callType, targetStep, stepId }: Json): string {
  if (callType === 'failureCall') return 'failure callback';
  const role = callType === 'step' ? '' : ` (${callType})`;
  return `${stepName}${role}${targetStep !== undefined && stepId === undefined ? ' (plan)' : ''}`;
}
