/**
 * One request and its response, from the wait for a connection to the outcome.
 *
 * It ends exactly once: by the end of the response or its size limit, by an error, by the deadline, or by our shutdown.
 * An early end also closes the socket; anything that arrives from it later is ignored.
 */
import type { Dispatcher } from 'undici';
import type { Millis, Outcome, ProjectId } from '../engine/model.ts';
import type { AttemptInFlight, Machine, Timer } from '../engine/ports.ts';
import { headerMapFromRaw } from '../protocol/headers.ts';
import type { HttpMethod } from '../protocol/options/settings.ts';
import { END_NAME_LENGTH, isEndHeader } from '../protocol/workflow/checkpoints.ts';
import { AnswerBody } from './answers/answer-body.ts';
import type { AnswerMemory } from './answers/answer-memory.ts';
import { decode, decoderFor } from './answers/content-encoding.ts';
import type { Destination } from './destination.ts';
import type { Interruptible } from './interruption.ts';
import type { Connection, Lessee, Origins } from './origins.ts';
import {
  compressedBomb,
  isHangUp,
  type Progress,
  timedOut,
  tooManyInterimAnswers,
  unreachable,
  unsendable,
} from './outcome.ts';

/** Interim responses are skipped. No endpoint needs more than a few; a flood of them is an attack on our CPU. */
const INTERIM_ANSWERS_MAX = 16;

type RawHeaders = Dispatcher.DispatchController['rawHeaders'];

export interface ExchangeRequest {
  projectId: ProjectId;
  destination: Destination;
  method: HttpMethod;
  /** Alternating names and values. Called again, for a new signature, if the request must be repeated. */
  buildHead(): string[];
  body: Buffer;
  /** Measured from now to the last byte of the response. */
  timeoutMs: Millis;
  answerBytesMax: number;
  /** The same for a response with an error status. */
  failureBytesMax: number;
  /** Whether the headers and body of a 2xx response are needed (contract M 7.3.1). They are read in any case. */
  keepSuccess: boolean;
  /** Whether a 2xx response may contain the result of a run, which is then needed (contract K 5). */
  mayEndRun: boolean;
}

export interface ExchangePorts {
  clock: Machine;
  origins: Origins;
  answerMemory: AnswerMemory;
  /** Called for each request that was repeated after the endpoint closed the connection. */
  onResend(): void;
}

export class Exchange implements Dispatcher.DispatchHandler, Lessee, AttemptInFlight, Interruptible {
  place = -1;
  readonly #request: ExchangeRequest;
  readonly #ports: ExchangePorts;
  readonly #settle: (outcome: Outcome) => void;
  #deadline: Timer | undefined;
  #connection: Connection | undefined;
  #ended = false;
  #resent = false;
  #started = false;
  /** The endpoint has proved that it read the request. */
  #isRead = false;
  #answerBegun = false;
  #interimAnswers = 0;
  #status = 0;
  #rawHeaders: RawHeaders;
  #bytesMax = 0;
  #body: AnswerBody | undefined;

  constructor(request: ExchangeRequest, ports: ExchangePorts, settle: (outcome: Outcome) => void) {
    this.#request = request;
    this.#ports = ports;
    this.#settle = settle;
  }

  /** Starts the deadline and requests a connection. `settle` is called once, possibly before this returns. */
  begin(): void {
    this.#setDeadline();
    this.#ports.origins.lease(this.#request.destination.origin, this);
  }

  extend(): void {
    if (this.#ended) return;
    this.#isRead = true;
    this.#deadline?.cancel();
    this.#setDeadline();
  }

  pause(): void {
    this.#deadline?.cancel();
  }

  /** For our shutdown or a cancel, which are not failures of the endpoint. */
  interrupt(): void {
    this.#giveUp({ kind: 'interrupted' });
  }

  onConnection(connection: Connection): void {
    this.#connection = connection;
    const { projectId, destination, method, body } = this.#request;
    connection.projectId = projectId;
    let headers: string[];
    try {
      headers = this.#request.buildHead();
    } catch (error) {
      // Expected: a message that cannot be signed, or an invalid header map.
      this.#giveUp(unsendable(error));
      return;
    }
    connection.client.dispatch(
      { path: destination.path, method, headers, body: body.length === 0 ? null : body },
      this,
    );
  }

  onRequestStart(): void {
    this.#started = true;
    this.#connection?.expectHead();
  }

  onResponseStarted(): void {
    this.#answerBegun = true;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (this.#ended) return;
    if (status < 200) {
      this.#interimAnswers += 1;
      if (this.#interimAnswers > INTERIM_ANSWERS_MAX) this.#giveUp(tooManyInterimAnswers());
      return;
    }
    this.#connection?.headRead();
    this.#status = status;
    const { keepSuccess, mayEndRun, answerBytesMax, failureBytesMax } = this.#request;
    const isFailure = status > 299;
    const keep = keepSuccess || isFailure || (mayEndRun && endsRun(controller.rawHeaders));
    this.#rawHeaders = keep ? controller.rawHeaders : undefined;
    this.#bytesMax = isFailure ? failureBytesMax : answerBytesMax;
    this.#body = new AnswerBody(this.#bytesMax, keep, this.#ports.answerMemory);
  }

  onResponseData(_controller: Dispatcher.DispatchController, piece: Uint8Array): void {
    if (this.#ended || this.#body === undefined) return;
    // Beyond the limit: the response is settled as it is, and the socket is closed.
    if (this.#body.add(piece)) return;
    this.#answered(this.#body);
    this.#connection?.discard();
  }

  onResponseEnd(): void {
    if (this.#ended || this.#body === undefined) return;
    this.#answered(this.#body);
    this.#connection?.release();
  }

  onResponseError(_controller: unknown, error: Error): void {
    if (this.#ended) return;
    if (this.#wasHangUpOnReuse(error)) {
      this.#sendAgain();
      return;
    }
    this.#giveUp(unreachable(error, this.#progress()));
  }

  /**
   * Whether the endpoint closed a reused connection before it read the request. A server may close a kept-alive connection at the
   * moment when we write to it. It usually has not read the request then, and a failed attempt would use up a retry without
   * a mistake of the endpoint. So the request is repeated once, at once, on a new connection and under the same
   * deadline. In rare cases the endpoint has read both: delivery is at least once, and both have the same message id and retry
   * count. On a new socket, or after a checkpoint or any byte of the response, a closed connection counts as a failure.
   */
  #wasHangUpOnReuse(error: Error): boolean {
    return (
      !this.#resent &&
      this.#started &&
      !this.#isRead &&
      !this.#answerBegun &&
      this.#connection !== undefined &&
      this.#connection.answersRead > 0 &&
      isHangUp(error)
    );
  }

  #sendAgain(): void {
    this.#resent = true;
    this.#started = false;
    this.#ports.onResend();
    const fresh = this.#connection?.replace();
    if (fresh !== undefined) this.onConnection(fresh);
  }

  #setDeadline(): void {
    const { timeoutMs } = this.#request;
    this.#deadline = this.#ports.clock.startTimer(timeoutMs, () => this.#giveUp(timedOut(timeoutMs)));
  }

  #giveUp(outcome: Outcome): void {
    if (this.#ended) return;
    this.#end(outcome);
    if (this.#connection === undefined) this.#ports.origins.withdraw(this.#request.destination.origin, this);
    else this.#connection.discard();
  }

  #end(outcome: Outcome): void {
    this.#ended = true;
    this.#deadline?.cancel();
    if (outcome.kind !== 'answered') this.#body?.release();
    this.#settle(outcome);
  }

  /** The response has ended. It is settled once its body is decoded, which cannot be interrupted. */
  #answered(received: AnswerBody): void {
    const header = headerMapFromRaw(latin1Lines(this.#rawHeaders));
    const settle = (body: AnswerBody | 'bomb'): void => {
      if (body === 'bomb') return this.#end(compressedBomb(this.#bytesMax));
      const answered: Outcome = { kind: 'answered', status: this.#status, header, body: body.bytes() };
      if (received.isCut || body.isCut) answered.isCut = true;
      if (body.holdsMemory) answered.release = () => body.release();
      this.#end(answered);
    };
    const decoder = decoderFor(header, received.bytes());
    if (decoder === undefined) return settle(received);
    this.#ended = true;
    this.#deadline?.cancel();
    decode(decoder, received, new AnswerBody(this.#bytesMax, true, this.#ports.answerMemory), settle);
  }

  #progress(): Progress {
    const { hostname, origin } = this.#request.destination;
    return {
      hostname,
      isTls: origin.startsWith('https:'),
      started: this.#started,
      answerBegun: this.#answerBegun,
      headRead: this.#status !== 0,
    };
  }
}

/** Whether the response ends the run. Comparing lengths first is fast, since most responses have no header of this length. */
function endsRun(rawHeaders: RawHeaders): boolean {
  if (!Array.isArray(rawHeaders)) return false;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name: string | Buffer | undefined = rawHeaders[at];
    if (name?.length === END_NAME_LENGTH && isEndHeader(name.toString('latin1'))) return true;
  }
  return false;
}

/** Header bytes are Latin-1. undici passes one Buffer for each name and each value. */
function latin1Lines(rawHeaders: RawHeaders): string[] {
  if (!Array.isArray(rawHeaders)) return [];
  return rawHeaders.map((text) => (typeof text === 'string' ? text : text.toString('latin1')));
}
