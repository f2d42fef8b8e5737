/** Wraps the delivery of a test server: counts the attempts in flight, and injects faults that a test has requested. */
import { timedOut } from '../delivery/outcome.ts';
import type { Claimed, Message, Millis, Outcome, ProjectId } from '../engine/model.ts';
import type { AttemptInFlight, Clock, Delivery } from '../engine/ports.ts';

/** A fault of the next `times` attempts of a project to URLs that start with `to`. */
export interface Fault {
  projectId: ProjectId;
  to: string;
  times: number;
  /** The response to use instead of calling the endpoint. */
  response?: { status: number; body: string };
  /** How long the response takes in virtual time; `Infinity` if it never arrives. */
  delayMs: Millis;
}

export class TestDelivery implements Delivery {
  readonly #delivery: Delivery;
  readonly #clock: Pick<Clock, 'startTimer'>;
  /** The timeout of attempts whose message sets no timeout, and the maximum of all other timeouts. */
  readonly #timeoutMsMax: Millis;
  readonly #faults: Fault[];
  #inFlight = 0;
  #startedCount = 0;
  #nextEnd = Promise.withResolvers<void>();

  /** Removes a fault from `faults` when the fault is used up. */
  constructor(
    delivery: Delivery,
    { clock, timeoutMsMax, faults = [] }: { clock: Pick<Clock, 'startTimer'>; timeoutMsMax: Millis; faults?: Fault[] },
  ) {
    this.#delivery = delivery;
    this.#clock = clock;
    this.#timeoutMsMax = timeoutMsMax;
    this.#faults = faults;
  }

  /** The number of attempts that take real time, without attempts that only wait for virtual time to pass. */
  get inFlight(): number {
    return this.#inFlight;
  }

  get startedCount(): number {
    return this.#startedCount;
  }

  /** Resolves when the next attempt has ended. */
  get nextEnd(): Promise<void> {
    return this.#nextEnd.promise;
  }

  async attempt(
    claimed: Claimed,
    signal: AbortSignal,
    onStarted?: (attempt: AttemptInFlight) => void,
  ): Promise<Outcome> {
    this.#startedCount += 1;
    const fault = this.#nextFault(claimed.message);
    const outcome = fault?.response ? responseOutcome(fault.response) : await this.#send(claimed, signal, onStarted);
    if (!fault || fault.delayMs === 0 || outcome.kind === 'interrupted') return outcome;
    const timeoutMs = Math.min(claimed.message.settings.timeoutMs ?? this.#timeoutMsMax, this.#timeoutMsMax);
    const isInTime = fault.delayMs < timeoutMs;
    const isOver = await this.#wait(Math.min(fault.delayMs, timeoutMs), signal);
    if (isOver && isInTime) return outcome;
    if (outcome.kind === 'responded') outcome.release?.();
    return isOver ? timedOut(timeoutMs) : { kind: 'interrupted' };
  }

  close(): Promise<void> {
    return this.#delivery.close();
  }

  async #send(claimed: Claimed, signal: AbortSignal, onStarted?: (attempt: AttemptInFlight) => void): Promise<Outcome> {
    let isPaused = false;
    let hasEnded = false;
    const setPaused = (pauses: boolean): void => {
      if (hasEnded || pauses === isPaused) return;
      isPaused = pauses;
      if (pauses) this.#end();
      else this.#inFlight += 1;
    };
    this.#inFlight += 1;
    try {
      // A paused attempt does not count as in flight, because its endpoint waits for the server.
      return await this.#delivery.attempt(claimed, signal, (attempt) =>
        onStarted?.({
          extend: () => {
            setPaused(false);
            attempt.extend();
          },
          pause: () => {
            setPaused(true);
            attempt.pause();
          },
          interrupt: () => attempt.interrupt(),
        }),
      );
    } finally {
      setPaused(true);
      hasEnded = true; // the end of an idle call may extend its attempt after the attempt has ended
    }
  }

  #end(): void {
    this.#inFlight -= 1;
    this.#nextEnd.resolve();
    this.#nextEnd = Promise.withResolvers();
  }

  #nextFault({ projectId, url }: Message): Fault | undefined {
    const index = this.#faults.findIndex((fault) => fault.projectId === projectId && url.startsWith(fault.to));
    const fault = this.#faults[index];
    if (!fault) return undefined;
    fault.times -= 1;
    if (fault.times <= 0) this.#faults.splice(index, 1);
    return fault;
  }

  /** Resolves to true after `ms` of virtual time, or to false if `signal` aborts first. */
  #wait(ms: Millis, signal: AbortSignal): Promise<boolean> {
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

function responseOutcome({ status, body }: { status: number; body: string }): Outcome {
  return { kind: 'responded', status, header: {}, body: Buffer.from(body) };
}
