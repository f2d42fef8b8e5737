/**
 * One request and its response, from the wait for a connection to the outcome.
 *
 * An exchange ends exactly once: with the end of the response or at its size limit, with an error, at the deadline, or at a
 * shutdown or cancel. An early end also closes the socket; anything that arrives from the socket later is ignored.
 */
import type { Dispatcher } from 'undici';
import type { Millis, Outcome, ProjectId } from '../engine/model.ts';
import type { AttemptInFlight, Machine, Timer } from '../engine/ports.ts';
import { headerMapFromRaw } from '../protocol/headers.ts';
import type { HttpMethod } from '../protocol/options/settings.ts';
import { END_NAME_LENGTH, isEndHeader } from '../protocol/workflow/checkpoints.ts';
import type { Destination } from './destination.ts';
import type { Interruptible } from './interruption.ts';
import type { Connection, Lessee, Origins } from './origins.ts';
import {
  compressedBomb,
  isHangUp,
  type Progress,
  timedOut,
  tooManyInterimResponses,
  unreachable,
  unsendable,
} from './outcome.ts';
import { decode, decoderFor } from './responses/content-encoding.ts';
import { ResponseBody } from './responses/response-body.ts';
import type { ResponseMemory } from './responses/response-memory.ts';

/** Interim responses are skipped. No endpoint needs more than a few; a flood of them is an attack on our CPU. */
const INTERIM_RESPONSES_MAX = 16;

type RawHeaders = Dispatcher.DispatchController['rawHeaders'];

export interface ExchangeRequest {
  projectId: ProjectId;
  destination: Destination;
  method: HttpMethod;
  /** Alternating names and values. Called again, for a new signature, if the request must be repeated. */
  buildHead(): string[];
  body: Buffer;
  /** Measured from the start of the exchange to the last byte of the response. */
  timeoutMs: Millis;
  /** Maximum length of the body of a 2xx response; the rest is truncated. */
  responseBytesMax: number;
  /** Maximum length of the body of a response without a success status. */
  failureBytesMax: number;
  /** Whether to keep the headers and body of a 2xx response (contract M 7.3.1), which are read in any case. */
  keepSuccess: boolean;
  /** Whether a 2xx response may contain the result of a run, which is then needed (contract K 5). */
  mayEndRun: boolean;
}

export interface ExchangePorts {
  clock: Machine;
  origins: Origins;
  responseMemory: ResponseMemory;
  /** Called for each request that was repeated after the endpoint closed the connection. */
  onResend(): void;
}

export class Exchange implements Dispatcher.DispatchHandler, Lessee, AttemptInFlight, Interruptible {
  groupIndex = -1;
  readonly #request: ExchangeRequest;
  readonly #ports: ExchangePorts;
  readonly #settle: (outcome: Outcome) => void;
  #deadline: Timer | undefined;
  #connection: Connection | undefined;
  #ended = false;
  #resent = false;
  #started = false;
  /** The endpoint has proved that it read the request. */
  #isRequestRead = false;
  #responseStarted = false;
  #interimResponses = 0;
  #status = 0;
  #rawHeaders: RawHeaders;
  #bytesMax = 0;
  #body: ResponseBody | undefined;

  constructor(request: ExchangeRequest, ports: ExchangePorts, settle: (outcome: Outcome) => void) {
    this.#request = request;
    this.#ports = ports;
    this.#settle = settle;
  }

  /** Starts the deadline and requests a connection. `settle` is called once, possibly before `start` returns. */
  start(): void {
    this.#setDeadline();
    this.#ports.origins.lease(this.#request.destination.origin, this);
  }

  extend(): void {
    if (this.#ended) return;
    this.#isRequestRead = true;
    this.#deadline?.cancel();
    this.#setDeadline();
  }

  pause(): void {
    this.#deadline?.cancel();
  }

  /** Ends the exchange at our shutdown or at a cancel, which are not failures of the endpoint. */
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
    this.#responseStarted = true;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (this.#ended) return;
    if (status < 200) {
      this.#interimResponses += 1;
      if (this.#interimResponses > INTERIM_RESPONSES_MAX) this.#giveUp(tooManyInterimResponses());
      return;
    }
    this.#connection?.headRead();
    this.#status = status;
    const { keepSuccess, mayEndRun, responseBytesMax, failureBytesMax } = this.#request;
    const isFailure = status > 299;
    const keep = keepSuccess || isFailure || (mayEndRun && endsRun(controller.rawHeaders));
    this.#rawHeaders = keep ? controller.rawHeaders : undefined;
    this.#bytesMax = isFailure ? failureBytesMax : responseBytesMax;
    this.#body = new ResponseBody(this.#bytesMax, keep, this.#ports.responseMemory);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#ended || this.#body === undefined) return;
    // The limit is exceeded: the truncated response is settled, and the socket is closed.
    if (this.#body.add(chunk)) return;
    this.#settleResponse(this.#body);
    this.#connection?.discard();
  }

  onResponseEnd(): void {
    if (this.#ended || this.#body === undefined) return;
    this.#settleResponse(this.#body);
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
   * Whether the endpoint closed a reused connection before it read the request. A server may close a kept-alive
   * connection at the moment when we write a request. Usually the server has not read the request, and a failed attempt
   * would use up a retry without a fault of the endpoint. So the request is repeated once, at once, on a new connection
   * and under the same deadline. In rare cases the endpoint reads both requests, with the same message id and retry
   * count: delivery is at least once. On a new socket, or after a checkpoint or any byte of the response, a closed
   * connection counts as a failure.
   */
  #wasHangUpOnReuse(error: Error): boolean {
    return (
      !this.#resent &&
      this.#started &&
      !this.#isRequestRead &&
      !this.#responseStarted &&
      this.#connection !== undefined &&
      this.#connection.responsesRead > 0 &&
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
    if (outcome.kind !== 'responded') this.#body?.release();
    this.#settle(outcome);
  }

  /** Settles the response once its body is decoded. Decoding cannot be interrupted. */
  #settleResponse(received: ResponseBody): void {
    const header = headerMapFromRaw(latin1Lines(this.#rawHeaders));
    const settle = (body: ResponseBody | 'bomb'): void => {
      if (body === 'bomb') return this.#end(compressedBomb(this.#bytesMax));
      const outcome: Outcome = { kind: 'responded', status: this.#status, header, body: body.bytes() };
      if (received.isCut || body.isCut) outcome.isCut = true;
      if (body.mustRelease) outcome.release = () => body.release();
      this.#end(outcome);
    };
    const decoder = decoderFor(header, received.bytes());
    if (decoder === undefined) return settle(received);
    this.#ended = true;
    this.#deadline?.cancel();
    decode(decoder, received, new ResponseBody(this.#bytesMax, true, this.#ports.responseMemory), settle);
  }

  #progress(): Progress {
    const { hostname, origin } = this.#request.destination;
    return {
      hostname,
      isTls: origin.startsWith('https:'),
      started: this.#started,
      responseStarted: this.#responseStarted,
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
