/** Around each attempt: is one under way, and is it to go wrong? */
import { timedOut } from '../delivery/outcome.ts';
import type { Claimed, Message, Millis, Outcome, ProjectId } from '../engine/model.ts';
import type { AttemptInFlight, Clock, Delivery } from '../engine/ports.ts';

/** What goes wrong with the next `times` attempts of a project to URLs that begin with `to`. */
export interface Fault {
  projectId: ProjectId;
  to: string;
  times: number;
  /** The response to use instead of calling the endpoint. */
  answer?: { status: number; body: string };
  /** How long the answer takes, by the held clock; `Infinity`: none comes. */
  lateMs: Millis;
}

export class Attempts implements Delivery {
  readonly #delivery: Delivery;
  readonly #clock: Pick<Clock, 'startTimer'>;
  /** How long an attempt may take whose message does not say so. */
  readonly #timeoutMsMax: Millis;
  readonly #faults: Fault[];
  #count = 0;
  #made = 0;
  #ended = Promise.withResolvers<void>();

  /** `faults`: those that are used up are taken out. */
  constructor(
    delivery: Delivery,
    { clock, timeoutMsMax, faults = [] }: { clock: Pick<Clock, 'startTimer'>; timeoutMsMax: Millis; faults?: Fault[] },
  ) {
    this.#delivery = delivery;
    this.#clock = clock;
    this.#timeoutMsMax = timeoutMsMax;
    this.#faults = faults;
  }

  /** Those that take real time: an answer that is late by the held clock is not waited for. */
  get underWay(): number {
    return this.#count;
  }

  get made(): number {
    return this.#made;
  }

  /** Resolves when the next attempt has ended. */
  get nextEnd(): Promise<void> {
    return this.#ended.promise;
  }

  async attempt(claimed: Claimed, signal: AbortSignal, begun?: (attempt: AttemptInFlight) => void): Promise<Outcome> {
    this.#made += 1;
    const fault = this.#nextFault(claimed.message);
    const outcome = fault?.answer ? answered(fault.answer) : await this.#send(claimed, signal, begun);
    if (!fault || fault.lateMs === 0 || outcome.kind === 'interrupted') return outcome;
    const timeoutMs = Math.min(claimed.message.settings.timeoutMs ?? this.#timeoutMsMax, this.#timeoutMsMax);
    const isInTime = fault.lateMs < timeoutMs;
    const isOver = await this.#pass(Math.min(fault.lateMs, timeoutMs), signal);
    if (isOver && isInTime) return outcome;
    if (outcome.kind === 'answered') outcome.release?.();
    return isOver ? timedOut(timeoutMs) : { kind: 'interrupted' };
  }

  close(): Promise<void> {
    return this.#delivery.close();
  }

  async #send(claimed: Claimed, signal: AbortSignal, begun?: (attempt: AttemptInFlight) => void): Promise<Outcome> {
    let isPaused = false;
    let hasEnded = false;
    const count = (pauses: boolean): void => {
      if (hasEnded || pauses === isPaused) return;
      isPaused = pauses;
      if (pauses) this.#end();
      else this.#count += 1;
    };
    this.#count += 1;
    try {
      // An endpoint that waits for us takes no real time.
      return await this.#delivery.attempt(claimed, signal, (attempt) =>
        begun?.({
          extend: () => {
            count(false);
            attempt.extend();
          },
          pause: () => {
            count(true);
            attempt.pause();
          },
          interrupt: () => attempt.interrupt(),
        }),
      );
    } finally {
      count(true);
      hasEnded = true; // an idle call extends its attempt when it ends, perhaps after the attempt
    }
  }

  #end(): void {
    this.#count -= 1;
    this.#ended.resolve();
    this.#ended = Promise.withResolvers();
  }

  #nextFault({ projectId, url }: Message): Fault | undefined {
    const index = this.#faults.findIndex((fault) => fault.projectId === projectId && url.startsWith(fault.to));
    const fault = this.#faults[index];
    if (!fault) return undefined;
    fault.times -= 1;
    if (fault.times <= 0) this.#faults.splice(index, 1);
    return fault;
  }

  /** Resolves to true when `ms` have passed, and to false when `signal` aborts before. */
  #pass(ms: Millis, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (isOver: boolean) => {
        timer.cancel();
        signal.removeEventListener('abort', onAbort);
        resolve(isOver);
      };
      const onAbort = () => end(false);
      const timer = this.#clock.startTimer(ms, () => end(true));
      signal.addEventListener('abort', onAbort);
    });
  }
}

function answered({ status, body }: { status: number; body: string }): Outcome {
  return { kind: 'answered', status, header: {}, body: Buffer.from(body) };
}
