/** Writes down what happens within the calls of the app: which steps are executed, and what the server says that it has kept of them. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Diary, DiaryLine } from './diary.ts';

/** A call as it began, and which of those that work on it: more than one, if it was delivered twice. */
interface Call {
  call: string;
  hand: number;
  runId: string;
}

type Arrival = Omit<Extract<DiaryLine, { kind: 'delivered' }>, 'kind' | 'call'>;

export class CallNotes {
  readonly #diary: Diary;
  readonly #calls = new AsyncLocalStorage<Call>();
  #count = 0;

  /** Listens to all that this process sends to the server. */
  constructor(diary: Diary) {
    this.#diary = diary;
    const { fetch } = globalThis;
    globalThis.fetch = async (input, init) => {
      const response = await fetch(input, init);
      if (String(input).endsWith('/v2/waypost/checkpoints')) await this.#checkpointed(String(init?.body), response);
      return response;
    };
  }

  arrived(arrival: Arrival): Omit<Call, 'hand'> {
    this.#count += 1;
    const call = `${process.pid}-${this.#count}`;
    this.#diary.write({ kind: 'delivered', call, ...arrival });
    return { call, runId: arrival.runId };
  }

  /** What `work` does belongs to `call`, and is done by one hand. */
  during<T>(call: Omit<Call, 'hand'>, hand: number, work: () => Promise<T>): Promise<T> {
    return this.#calls.run({ ...call, hand }, work);
  }

  /** To be told before the step has a result. */
  executed(step: string): void {
    const call = this.#calls.getStore();
    if (call) this.#diary.write({ kind: 'executed', ...call, step });
  }

  async #checkpointed(body: string, response: Response): Promise<void> {
    const call = this.#calls.getStore();
    if (!call) return;
    const answer = (await response.clone().json()) as Answered;
    if (response.status === 409) this.#diary.write({ kind: 'stopped', ...call, reason: answer.reason ?? '' });
    if (response.status !== 200) return;
    const { append } = JSON.parse(body) as { append: { step?: Step }[] };
    for (const [at, { step }] of append.entries()) {
      const { messageId = '', token } = answer.entries?.[at] ?? {};
      // Without a token it may be the result of another execution.
      if (token === undefined || !step || step.stepId === 0) continue;
      this.#diary.write({ kind: 'kept', ...call, step: step.stepName, messageId, body: JSON.stringify(step) });
    }
  }
}

interface Step {
  stepId: number;
  stepName: string;
}

interface Answered {
  reason?: string;
  entries?: { messageId: string; token?: string }[];
}
