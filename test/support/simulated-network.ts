/**
 * Simulates the network and the endpoints, and records all attempts.
 *
 * An attempt travels to its endpoint and gets a response after a while. If its sender dies, the endpoint still sees the
 * attempt, but the response is lost.
 */
import type { Claimed, ClaimToken, MessageId, Millis, Outcome } from '../../src/engine/model.ts';
import type { AttemptInFlight, Clock, Delivery, Machine, Timer } from '../../src/engine/ports.ts';
import type { HeaderMap } from '../../src/protocol/options/settings.ts';

/** The reaction of an endpoint to a request. */
export type Reply =
  | { kind: 'answer'; status: number; afterMs: Millis; header?: HeaderMap; body?: Uint8Array }
  | { kind: 'reset'; afterMs: Millis }
  /** Reads the request and never responds; the attempt times out. */
  | { kind: 'silence' }
  /** The request cannot be sent. */
  | { kind: 'unsendable' };

/** Returns the reply, or a promise if the endpoint has work to do first. */
export type Endpoint = (attempt: Readonly<Attempt>) => Reply | Promise<Reply>;

/** The record of one attempt. Times are wall-clock times. */
export interface Attempt {
  messageId: MessageId;
  url: string;
  origin: string;
  bodyBytes: number;
  retried: number;
  claimToken: ClaimToken;
  claimedAtMs: Millis;
  /** The message that was sent. */
  claimed: Claimed;
  /** The number of the sender. */
  sender: number;
  sentAtMs: Millis;
  /** No request was sent: the message was handed to an open call. */
  isHandover?: true;
  /** Set when the attempt has reached the endpoint. */
  reply?: Reply;
  /** Set when the attempt has ended for the sender. */
  outcome?: Outcome;
}

export interface NetworkSettings {
  /** Time until a request arrives. */
  travelMs: () => Millis;
  /** The timeout of attempts whose message has no timeout. */
  timeoutMs: Millis;
}

export class SimulatedNetwork {
  readonly attempts: Attempt[] = [];
  /** Called twice for every attempt: at its start, and when it has an outcome. */
  onAttempt: (attempt: Attempt) => void = () => {};
  readonly #clock: Clock;
  readonly #settings: NetworkSettings;
  readonly #endpointByOrigin = new Map<string, Endpoint>();
  #senders = 0;

  constructor(clock: Clock, settings: NetworkSettings) {
    this.#clock = clock;
    this.#settings = settings;
  }

  /** From now on `endpoint` handles requests to `origin`. Requests to origins without an endpoint are reset. */
  setEndpoint(origin: string, endpoint: Endpoint): void {
    this.#endpointByOrigin.set(origin, endpoint);
  }

  /** Creates the delivery of one process, with its timers and its clock. Default: the network's clock for both. */
  connect(machine: Machine = this.#clock, clock: Clock = this.#clock): SimulatedSender {
    this.#senders += 1;
    return new SimulatedSender({ number: this.#senders, machine, clock, settings: this.#settings, network: this });
  }

  /** Sends `attempt` to its endpoint. The request cannot be cancelled. */
  carry(attempt: Attempt, answer: (reply: Reply) => void): void {
    this.#clock.startTimer(this.#settings.travelMs(), () => this.arrive(attempt, answer));
  }

  /** Delivers `attempt` to its endpoint, and passes the reply to `answer`. */
  arrive(attempt: Attempt, answer: (reply: Reply) => void): void {
    const endpoint = this.#endpointByOrigin.get(attempt.origin);
    const answerWith = (reply: Reply) => {
      attempt.reply = reply;
      answer(reply);
    };
    const reply = endpoint ? endpoint(attempt) : ({ kind: 'reset', afterMs: 0 } as const);
    if (reply instanceof Promise) void reply.then(answerWith);
    else answerWith(reply);
  }
}

export class SimulatedSender implements Delivery {
  readonly number: number;
  /** The attempts in flight. */
  readonly running = new Map<Attempt, Claimed>();
  readonly #machine: Machine;
  readonly #clock: Clock;
  readonly #settings: NetworkSettings;
  readonly #network: SimulatedNetwork;
  #dead = false;

  constructor(parts: {
    number: number;
    machine: Machine;
    clock: Clock;
    settings: NetworkSettings;
    network: SimulatedNetwork;
  }) {
    this.number = parts.number;
    this.#machine = parts.machine;
    this.#clock = parts.clock;
    this.#settings = parts.settings;
    this.#network = parts.network;
  }

  /** The process dies: it sends and receives nothing more. */
  die(): void {
    this.#dead = true;
  }

  attempt(claimed: Claimed, signal: AbortSignal, onStarted?: (attempt: AttemptInFlight) => void): Promise<Outcome> {
    if (this.#dead) return new Promise(() => {});
    if (signal.aborted) return Promise.resolve({ kind: 'interrupted' });
    const attempt = this.#note(claimed);
    return new Promise((resolve) => {
      const timers: Timer[] = [];
      const onAbort = () => end({ kind: 'interrupted' });
      const end = (outcome: Outcome) => {
        signal.removeEventListener('abort', onAbort);
        for (const timer of timers) timer.cancel();
        if (this.#dead || !this.running.delete(attempt)) return;
        attempt.outcome = outcome;
        this.#network.onAttempt(attempt);
        resolve(outcome);
      };
      signal.addEventListener('abort', onAbort);
      const limitMs = Math.min(claimed.message.settings.timeoutMs ?? Infinity, this.#settings.timeoutMs);
      let limit: Timer | undefined;
      const extend = () => {
        limit?.cancel();
        limit = this.running.has(attempt)
          ? this.#machine.startTimer(limitMs, () => end(unreachable('timeout')))
          : undefined;
      };
      timers.push({ cancel: () => limit?.cancel() });
      extend();
      onStarted?.({ extend, pause: () => limit?.cancel(), interrupt: onAbort });
      // A sent request arrives even if its sender has given up.
      this.#network.carry(attempt, (reply) => {
        const afterMs = reply.kind === 'answer' || reply.kind === 'reset' ? reply.afterMs : 0;
        if (reply.kind !== 'silence') timers.push(this.#machine.startTimer(afterMs, () => end(outcomeOf(reply))));
      });
    });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #note(claimed: Claimed): Attempt {
    const { message, retried, claimToken, claimedAtMs } = claimed;
    const { id: messageId, url, origin, body } = message;
    const sentAtMs = this.#clock.nowMs();
    const made = { messageId, url, origin, bodyBytes: body.length, retried, claimToken, claimedAtMs, claimed };
    const attempt: Attempt = { ...made, sender: this.number, sentAtMs };
    this.#network.attempts.push(attempt);
    this.running.set(attempt, claimed);
    this.#network.onAttempt(attempt);
    return attempt;
  }
}

function outcomeOf(reply: Exclude<Reply, { kind: 'silence' }>): Outcome {
  switch (reply.kind) {
    case 'answer': {
      const { status, header = {}, body = new Uint8Array() } = reply;
      return { kind: 'responded', status, header, body };
    }
    case 'reset':
      return unreachable('reset');
    case 'unsendable':
      return unreachable('unsendable');
  }
}

function unreachable(reason: 'timeout' | 'reset' | 'unsendable'): Outcome {
  return { kind: 'unreachable', reason, error: `simulated ${reason}` };
}
