/**
 * The workflows of the crash test, written as users write them for either library. Together they have each kind of step, and
 * each defines the expected result of a run. Every execution of a step creates a new value, so the result of the run reveals a
 * step that was recorded twice or has the value of another execution.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { InvokableWorkflow, WorkflowContext } from '@upstash/workflow';
import type { Library } from './libraries.ts';

export interface Payload {
  /** Unique among all runs. The tag of a child run starts with its parent's tag. */
  tag: string;
  /** The URL of the endpoints that workflows call. */
  third: string;
}

export type ProgramName =
  | 'sequence'
  | 'sleeps'
  | 'calls'
  | 'parallel'
  | 'waits'
  | 'races'
  | 'notifies'
  | 'hooks'
  | 'invokes'
  | 'nests'
  | 'refuses'
  | 'exhausts'
  | 'oversleeps';

type Lines = string[] | undefined;
type Context = WorkflowContext<Payload>;
type Invokables = Record<ProgramName, InvokableWorkflow<Payload, Lines>>;

/**
 * A run returns lines. The result of an execution, and the content of a notification, end in a mark: `#` and hexadecimal
 * digits; `expected` has the lines without them.
 */
interface Program {
  run(context: Context, all: Invokables, library: Library): Promise<Lines>;
  /** The lines that a run may return, one list for each possible course; none if it must fail. */
  expected(tag: string): string[][];
  /** The number of runs that the program invokes. */
  children?: number;
}

/** Enough retries to survive any crash of either side: the longest gap is a second or two. */
export const PERSISTENT = { retries: 300, retryDelay: '100' } as const;
// Long enough that kills often hit a step, and short enough that many steps end between two kills.
const WORK_MS = 4;
const NEVER = '10m';

/** A new mark. */
export function newMark(): string {
  return `#${randomBytes(5).toString('hex')}`;
}

/** The event that a run waits for. */
export function eventOf(tag: string): string {
  return `event-${tag.replaceAll('/', '-')}`;
}

const PROGRAMS: Record<ProgramName, Program> = {
  /** One step after the other. */
  sequence: {
    async run(context) {
      return [await work(context, 'one'), await work(context, 'two'), await work(context, 'three')];
    },
    expected: (tag) => [sequenceLines(tag)],
  },

  /** Sleeps for a time and until a time. */
  sleeps: {
    async run(context) {
      const before = await work(context, 'before');
      await context.sleep('nap', 0.3);
      const wakeAt = await context.run('wake', () => Date.now() / 1000 + 1);
      await context.sleepUntil('until', wakeAt);
      return [before, await work(context, 'after')];
    },
    expected: (tag) => [[`before of ${tag}`, `after of ${tag}`]],
  },

  /** Calls an endpoint that fails first, and an endpoint that always fails. A failed call is a result like any other. */
  calls: {
    async run(context) {
      const { third, tag } = context.requestPayload;
      const retries = { method: 'POST', body: tag, retryDelay: '30' } as const;
      const flaky = await context.call<string>('flaky', { url: `${third}/flaky`, retries: 3, ...retries });
      const broken = await context.call<string>('broken', { url: `${third}/broken`, retries: 1, ...retries });
      return [`${flaky.status} ${flaky.body}`, `${broken.status} ${broken.body}`];
    },
    expected: (tag) => [[`200 flaky hears "${tag}"`, `500 broken hears "${tag}"`]],
  },

  /** Branches of several kinds, and a step after they have joined. */
  parallel: {
    async run(context, all) {
      // The library also runs this for the responses to calls, which are not a payload, until it reaches the first step.
      const before = await work(context, 'before');
      const { third, tag } = context.requestPayload;
      const [left, called, , child, expired, right] = await Promise.all([
        work(context, 'left'),
        context.call<string>('call', { url: `${third}/ok`, method: 'POST', body: tag }),
        context.sleep('nap', 0.2),
        invoke(context, all.sequence, 'child'),
        context.waitForEvent('wait', `never-${eventOf(tag)}`, { timeout: '1s' }),
        work(context, 'right'),
      ]);
      return [
        before,
        left,
        `${called.status} ${called.body}`,
        child,
        expired.timeout ? 'expired' : 'woken',
        right,
        await work(context, 'joined'),
      ];
    },
    expected: (tag) => [
      [
        `before of ${tag}`,
        `left of ${tag}`,
        `200 ok hears "${tag}"`,
        returned(sequenceLines(`${tag}/child`)),
        'expired',
        `right of ${tag}`,
        `joined of ${tag}`,
      ],
    ],
    children: 1,
  },

  /** Waits for a notification, which is saved as a pending event if it arrives early. */
  waits: {
    async run(context) {
      const before = await work(context, 'before');
      const { eventData, timeout } = await context.waitForEvent('wait', eventOf(context.requestPayload.tag), {
        timeout: NEVER,
      });
      return [before, timeout ? 'expired' : `woken by ${eventData}`];
    },
    expected: (tag) => [[`before of ${tag}`, `woken by news for ${tag}`]],
  },

  /** Waits for one second, and is notified at about the same time: either may be first. */
  races: {
    async run(context) {
      const { eventData, timeout } = await context.waitForEvent('wait', eventOf(context.requestPayload.tag), {
        timeout: '1s',
      });
      return [timeout ? 'expired' : `woken by ${eventData}`, await work(context, 'after')];
    },
    expected: (tag) => [
      ['expired', `after of ${tag}`],
      [`woken by news for ${tag}`, `after of ${tag}`],
    ],
  },

  /** Notifies itself, before it waits. */
  notifies: {
    async run(context) {
      const { tag } = context.requestPayload;
      const news = await work(context, 'news');
      await context.notify('tell', eventOf(tag), news, context.workflowRunId);
      const { eventData, timeout } = await context.waitForEvent('wait', eventOf(tag), { timeout: NEVER });
      return [news, timeout ? 'expired' : `woken by ${eventData}`];
    },
    expected: (tag) => [[`news of ${tag}`, `woken by news of ${tag}`]],
  },

  /** Causes a call of its own webhook before it waits for the call. */
  hooks: {
    async run(context) {
      const webhook = await context.createWebhook('hook');
      await context.run('ring', async () => {
        const answer = await fetch(webhook.webhookUrl, {
          method: 'POST',
          body: `ring of ${context.requestPayload.tag}${newMark()}`,
        });
        if (!answer.ok) throw new Error(`the webhook answered ${answer.status}`);
      });
      const rung = await context.waitForWebhook('wait', webhook, NEVER);
      return [rung.timeout ? 'expired' : await rung.request.text()];
    },
    expected: (tag) => [[`ring of ${tag}`]],
  },

  /** Invokes a run that invokes another, and one that fails. */
  invokes: {
    async run(context, all) {
      return [
        await invoke(context, all.nests, 'first'),
        await invoke(context, all.refuses, 'second'),
        await work(context, 'after'),
      ];
    },
    expected: (tag) => [
      [returned([returned(sequenceLines(`${tag}/first/inner`)), `after of ${tag}/first`]), 'failed', `after of ${tag}`],
    ],
    children: 2,
  },

  /** The run that `invokes` invokes. */
  nests: {
    async run(context, all) {
      return [await invoke(context, all.sequence, 'inner'), await work(context, 'after')];
    },
    expected: (tag) => [[returned(sequenceLines(`${tag}/inner`)), `after of ${tag}`]],
    children: 1,
  },

  /** Fails on purpose. */
  refuses: {
    async run(context, _all, { WorkflowNonRetryableError }) {
      await work(context, 'one');
      throw new WorkflowNonRetryableError(`${context.requestPayload.tag} is refused`);
    },
    expected: () => [],
  },

  /** Fails until its retries are used up. */
  exhausts: {
    async run(context) {
      await work(context, 'one');
      await context.run('two', () => {
        throw new Error(`${context.requestPayload.tag} fails`);
      });
      return undefined;
    },
    expected: () => [],
  },

  /** Sleeps until it is cancelled. */
  oversleeps: {
    async run(context) {
      await work(context, 'one');
      await context.sleep('sleep', NEVER);
      return undefined;
    },
    expected: () => [],
  },
};

/** Returns `undefined` if there is no program with this name. */
export function programOf(name: string): Program | undefined {
  return Object.hasOwn(PROGRAMS, name) ? PROGRAMS[name as ProgramName] : undefined;
}

/** The listeners to the library. */
export interface Hooks {
  /** Called by the failure function. */
  onFailure(workflowRunId: string): void;
  /** Called before the step is executed. */
  onExecution(stepName: string): void;
}

/** All programs as workflows of `library`. */
export function invokables(library: Library, { onFailure, onExecution }: Hooks): Invokables {
  const options = {
    failureFunction: ({ context }: { context: { workflowRunId: string } }) => onFailure(context.workflowRunId),
    middlewares: [
      new library.WorkflowMiddleware({
        name: 'hooks',
        callbacks: { beforeExecution: ({ stepName }) => onExecution(stepName) },
      }),
    ],
  };
  const all = {} as Invokables;
  for (const name of Object.keys(PROGRAMS) as ProgramName[]) {
    all[name] = library.createWorkflow<Payload, Lines>((context) => PROGRAMS[name].run(context, all, library), options);
  }
  return all;
}

/** A step that has another result in every execution. */
function work(context: Context, name: string): Promise<string> {
  return context.run(name, async () => {
    await sleep(WORK_MS);
    return `${name} of ${context.requestPayload.tag}${newMark()}`;
  });
}

/** Invokes a run with its own tag, and returns a line about its end. */
async function invoke(context: Context, workflow: Invokables[ProgramName], name: string): Promise<string> {
  const { tag, third } = context.requestPayload;
  const ended = await context.invoke(name, { workflow, body: { tag: `${tag}/${name}`, third }, ...PERSISTENT });
  if (ended.isCanceled) return 'cancelled';
  return ended.isFailed ? 'failed' : returned(ended.body);
}

function returned(lines: Lines): string {
  return `returned ${JSON.stringify(lines)}`;
}

function sequenceLines(tag: string): string[] {
  return ['one', 'two', 'three'].map((name) => `${name} of ${tag}`);
}
