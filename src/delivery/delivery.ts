/** Delivers a message once over HTTP/1.1: the engine's `Delivery` (contract M 7). */
import type { Claimed, Millis, Outcome, ProjectId } from '../engine/model.ts';
import type { AttemptInFlight, Delivery, Machine, Randomness } from '../engine/ports.ts';
import { mintJwtId, type RandomBytes } from '../protocol/ids.ts';
import { memo } from '../protocol/memo.ts';
import type { MessageSettings } from '../protocol/options/settings.ts';
import { signDelivery } from '../protocol/signature.ts';
import { mintCheckpointToken, takesCheckpoints } from '../protocol/workflow/checkpoints.ts';
import { isDetecting } from '../workflow/detection.ts';
import {
  type AddressClass,
  AddressGuard,
  type AddressPolicy,
  isListedHost,
  literalAddress,
} from './addresses/address-guard.ts';
import { type Resolver, resolverOf } from './addresses/resolver.ts';
import { createConnector } from './connector.ts';
import { type Destination, readDestination } from './destination.ts';
import { Exchange, type ExchangePorts, type ExchangeRequest } from './exchange.ts';
import { Interruptions } from './interruption.ts';
import { Origins } from './origins.ts';
import { blocked, unsendable } from './outcome.ts';
import { requestHead } from './request-head.ts';
import { ResponseMemory } from './responses/response-memory.ts';

export interface DeliveryOptions {
  clock: Machine;
  randomness: Randomness;
  /** The project's current signing key, from the caller's cache. The key is read at each attempt. */
  signingKey(projectId: ProjectId): string;
  addresses: AddressPolicy;
  /** Maximum duration of an attempt, and the default timeout of messages. */
  timeoutMsMax: Millis;
  /** Maximum length of a response body; the rest is truncated. */
  responseBytesMax: number;
  /** Like `responseBytesMax`, for messages of a workflow run, whose response is a result. Default: `responseBytesMax`. */
  runResponseBytesMax?: number;
  /**
   * Like `responseBytesMax`, for a response that makes a run fail; its failure function receives the body. Default:
   * `runResponseBytesMax`.
   */
  runFailureBytesMax?: number;
  /** Maximum memory of response bodies over all attempts. A response that exceeds it is truncated. */
  responseMemoryBytesMax: number;
  responseHeaderBytesMax: number;
  connectionsPerOriginMax: number;
  originsMax: number;
  /** The index of this worker in its process. Default: 0. */
  worker?: number;
  /** Sent as `Upstash-Region`. */
  region?: string;
  /** Hosts that receive the `baggage` of publishers: exact names or `*.suffix`. Default: none. */
  baggageHosts?: readonly string[];
  verifyTls: boolean;
  /** Default: the system's resolver. */
  resolver?: Resolver;
}

export interface DeliveryStats {
  /** Origins with a connection, and the number of connections. */
  origins: number;
  connections: number;
  /** Attempts that wait for a connection to their origin. */
  waiting: number;
  inFlight: number;
  /** Requests that were repeated at once because the endpoint had just closed a kept-alive connection. */
  resent: number;
}

export function createDelivery(options: DeliveryOptions): Delivery & { stats(): DeliveryStats } {
  return new HttpDelivery(options);
}

class HttpDelivery implements Delivery {
  readonly #options: DeliveryOptions;
  readonly #guard: AddressGuard;
  readonly #origins: Origins;
  readonly #random: RandomBytes;
  /** The check of a host that is an address literal; names are checked when they are resolved. */
  readonly #literalVerdict: (hostname: string) => { refused: AddressClass | undefined };
  readonly #interruptions = new Interruptions();
  readonly #ports: ExchangePorts;
  #inFlight = 0;
  #resent = 0;
  #closed = false;

  constructor(options: DeliveryOptions) {
    this.#options = options;
    this.#guard = new AddressGuard(options.addresses);
    this.#random = (count) => options.randomness.bytes(count);
    this.#literalVerdict = memo((hostname) => {
      const literal = literalAddress(hostname);
      return { refused: literal === undefined ? undefined : this.#guard.blockedClass(literal, literal) };
    });
    const { resolver = resolverOf(1) } = options;
    this.#origins = new Origins({
      connector: createConnector(this.#guard, resolver, options.verifyTls),
      connectionsPerOriginMax: options.connectionsPerOriginMax,
      originsMax: options.originsMax,
      responseHeaderBytesMax: options.responseHeaderBytesMax,
    });
    const onResend = () => {
      this.#resent += 1;
    };
    const responseMemory = new ResponseMemory(options.responseMemoryBytesMax);
    this.#ports = { clock: options.clock, origins: this.#origins, responseMemory, onResend };
  }

  attempt(claimed: Claimed, signal: AbortSignal, onStart?: (attempt: AttemptInFlight) => void): Promise<Outcome> {
    return new Promise((resolve) => {
      if (this.#closed || signal.aborted) return resolve({ kind: 'interrupted' });
      try {
        const destination = readDestination(claimed.message.url, claimed.message.origin);
        const { refused } = this.#literalVerdict(destination.hostname);
        if (refused === undefined) this.#exchange(claimed, destination, signal, resolve, onStart);
        else resolve(blocked(refused));
      } catch (error) {
        // Expected: an invalid URL. Nothing has been sent.
        resolve(unsendable(error));
      }
    });
  }

  stats(): DeliveryStats {
    return { ...this.#origins.stats(), inFlight: this.#inFlight, resent: this.#resent };
  }

  /** Interrupts all attempts and closes all connections. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#interruptions.interruptAll();
    this.#origins.closeIdle();
  }

  /** Sends the request, and calls `resolve` once with the outcome. */
  #exchange(
    claimed: Claimed,
    destination: Destination,
    signal: AbortSignal,
    resolve: (outcome: Outcome) => void,
    onStart?: (attempt: AttemptInFlight) => void,
  ): void {
    const { projectId, method, settings } = claimed.message;
    const body = bodyOf(claimed);
    const { timeoutMsMax } = this.#options;
    const request: ExchangeRequest = {
      projectId,
      destination,
      method,
      buildHead: () => this.#signedHead(claimed, destination),
      body: Buffer.isBuffer(body) ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength),
      timeoutMs: Math.min(settings.timeoutMs ?? timeoutMsMax, timeoutMsMax),
      ...this.#limitsOf(settings),
      keepSuccess: needsResponse(settings),
      mayEndRun: settings.run !== undefined && takesCheckpoints(settings.run),
    };
    const exchange = new Exchange(request, this.#ports, (outcome) => {
      this.#inFlight -= 1;
      this.#interruptions.remove(signal, exchange);
      resolve(outcome);
    });
    this.#inFlight += 1;
    this.#interruptions.add(signal, exchange);
    onStart?.(exchange);
    exchange.start();
  }

  #limitsOf({ run }: MessageSettings): Pick<ExchangeRequest, 'responseBytesMax' | 'failureBytesMax'> {
    const { responseBytesMax, runResponseBytesMax = responseBytesMax } = this.#options;
    if (!run) return { responseBytesMax: responseBytesMax, failureBytesMax: responseBytesMax };
    const { runFailureBytesMax = runResponseBytesMax } = this.#options;
    // The response to a `context.call` is the result of the call, whatever the status. The response to a failure callback
    // is discarded.
    const failsRun = run.callType !== 'toCallback' && run.callType !== 'failureCall';
    return {
      responseBytesMax: runResponseBytesMax,
      failureBytesMax: failsRun ? runFailureBytesMax : runResponseBytesMax,
    };
  }

  /** Called when the request is sent, so that waiting for a connection does not shorten the lifetime of the signature. */
  #signedHead(claimed: Claimed, { hostname, authorization, requestedUrl }: Destination): string[] {
    const { message, claimToken } = claimed;
    const { key, projectId, settings } = message;
    const signingKey = this.#options.signingKey(projectId);
    const signature = signDelivery({
      url: requestedUrl,
      body: bodyOf(claimed),
      signingKey,
      nowS: Math.floor(this.#options.clock.wallMs() / 1_000),
      jwtId: mintJwtId(this.#random),
      dialect: settings.dialect,
    });
    const { worker = 0, region, baggageHosts = [] } = this.#options;
    const mayHaveBaggage = settings.trace?.baggage !== undefined && isListedHost(baggageHosts, hostname);
    const { run } = settings;
    const checkpoint =
      run && takesCheckpoints(run)
        ? mintCheckpointToken({ projectId, runKey: run.key, key, claimToken, worker }, signingKey)
        : undefined;
    return requestHead({ claimed, signature, authorization, region, mayHaveBaggage, checkpoint });
  }
}

/** The body to send. For a message of a run, usually the journal of the run, which ends with that message (contract W 8.1). */
function bodyOf({ message, deliveredBody }: Claimed): Uint8Array {
  return deliveredBody ?? message.body;
}

/** Whether the response to a successful attempt is needed: for a callback, or for the log of a run (contract W 6.1, 13). */
function needsResponse({ callback, run }: MessageSettings): boolean {
  if (callback !== undefined) return true;
  return run !== undefined && (run.callType === 'failureCall' || isDetecting(run));
}
