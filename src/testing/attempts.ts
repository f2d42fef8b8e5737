/** Wraps the delivery of a test server: counts the attempts in flight, and injects the faults that a test has requested. */
import { timedOut } from '../delivery/outcome.ts';
import type { Claimed, Message, Millis, Outcome, ProjectId } from '../engine/model.ts';
import type { AttemptInFlight, Clock, Delivery } from '../engine/ports.ts';

/** A fault of the next `times` attempts of a project to URLs that start with `to`. */
export interface Fault {
  projectId: ProjectId;
  to: string;
  times: number;
  /** The response to use instead of calling the endpoint. */
  answer?: { status: number; body: string };
  /** How long the response takes in virtual time; `Infinity`: it never arrives. */
  lateMs: Millis;
}

export class Attempts implements Delivery {
  readonly #delivery: Delivery;
  readonly #clock: Pick<Clock, 'startTimer'>;
  /** The timeout of attempts whose message sets none, and the maximum of all others. */
  readonly #timeoutMsMax: Millis;
  readonly #faults: Fault[];
  #count = 0;
  #made = 0;
  #ended = Promise.withResolvers<void>();

  /** Removes faults from `faults` when they are used up. */
  constructor(
    delivery: Delivery,
    { clock, timeoutMsMax, faults = [] }: { clock: Pick<Clock, 'startTimer'>; timeoutMsMax: Millis; faults?: Fault[] },
  ) {
    this.#delivery = delivery;
    this.#clock = clock;
    this.#timeoutMsMax = timeoutMsMax;
    this.#faults = faults;
  }

  /** Attempts that take real time: not those that only wait for virtual time to pass. */
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
      // A paused attempt takes no real time: its endpoint waits for the server.
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

  /** Resolves to true after `ms`, or to false when `signal` aborts first. */
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
