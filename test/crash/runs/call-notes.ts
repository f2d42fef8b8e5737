/**
 * Records the events within calls of the app: the executed steps, the results that the server has acknowledged, and the
 * messages that the server sends to an idle call.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import type { DeliveredEntry, Diary, DiaryLine } from './diary.ts';

/** A call at its start, and the number of its handler: there are several if the call was delivered twice. */
interface Call {
  call: string;
  hand: number;
  runId: string;
}

type Arrival = Omit<Extract<DiaryLine, { kind: 'delivered' }>, 'kind' | 'call'>;
type Request = (url: string, options: object, onAnswer: (answer: IncomingMessage) => void) => ClientRequest;

export class CallNotes {
  readonly #diary: Diary;
  readonly #calls = new AsyncLocalStorage<Call>();
  #count = 0;

  /** Listens to all checkpoints of this process: on Node the library sends them by `http.request`. */
  constructor(diary: Diary) {
    this.#diary = diary;
    const request = http.request as Request;
    const listening: Request = (url, options, onAnswer) => {
      const call = this.#calls.getStore();
      if (!call || !url.endsWith('/v2/waypost/checkpoints')) return request(url, options, onAnswer);
      let body = '';
      const sent = request(url, options, (answer) => {
        let text = '';
        answer.on('data', (chunk: Buffer | string) => {
          text += String(chunk);
        });
        // Runs before the library's listener, which is called next.
        answer.on('end', () => this.#checkpointed(call, body, answer.statusCode ?? 0, text));
        onAnswer(answer);
      });
      const end = sent.end.bind(sent);
      sent.end = (given: unknown) => {
        body = String(given);
        return end(given);
      };
      return sent;
    };
    http.request = listening as typeof http.request;
  }

  arrived(arrival: Arrival): Omit<Call, 'hand'> {
    this.#count += 1;
    const call = `${process.pid}-${this.#count}`;
    this.#diary.write({ kind: 'delivered', call, ...arrival });
    return { call, runId: arrival.runId };
  }

  /** Attributes the actions of `work` to `call`, and to one handler. */
  during<T>(call: Omit<Call, 'hand'>, hand: number, work: () => Promise<T>): Promise<T> {
    return this.#calls.run({ ...call, hand }, work);
  }

  /** Must be called before the step has a result. */
  executed(step: string): void {
    const call = this.#calls.getStore();
    if (call) this.#diary.write({ kind: 'executed', ...call, step });
  }

  #checkpointed(call: Call, body: string, status: number, text: string): void {
    if (status !== 200 && status !== 409) return;
    const { reason = '', entries = [], next } = JSON.parse(text) as Answer;
    if (status === 409) this.#diary.write({ kind: 'stopped', ...call, reason });
    const { append = [] } = JSON.parse(body) as { append?: { step?: Step }[] };
    for (const [at, { messageId, token }] of entries.entries()) {
      const step = append[at]?.step;
      // Without a token, this may be the result of another execution.
      if (token === undefined || !step || step.stepId === 0) continue;
      this.#diary.write({ kind: 'kept', ...call, step: step.stepName, messageId, body: JSON.stringify(step) });
    }
    if (next?.entries) this.#diary.write({ kind: 'handed over', ...call, entries: next.entries });
  }
}

interface Step {
  stepId: number;
  stepName: string;
}

interface Answer {
  reason?: string;
  entries?: { messageId: string; token?: string }[];
  next?: { entries?: DeliveredEntry[] };
}
