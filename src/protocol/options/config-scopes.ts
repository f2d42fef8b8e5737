/** Sorts the headers and parameters of a publish by the message to configure: the published message or a callback. */
import { canonicalHeaderName, trimBlanks } from '../headers.ts';
import type { PlainHeaderPolicy } from '../trace-context.ts';
import { type CallbackKind, type ConfigName, hasConfigPrefix, readConfigName } from './config-names.ts';
import type { Dialect, HeaderMap } from './settings.ts';

/** The parts of a publish that configure its message, not yet checked. */
export interface OptionsInput {
  /** Node's flat list of names and values. */
  rawHeaders: readonly string[];
  /** Config parameters of the query: lower-case header name and decoded value. */
  queryConfig: readonly (readonly [string, string])[];
  /** Whether `qstash_token` was used; if so, an `Authorization` header is for the destination. */
  tokenInQuery: boolean;
  /** Headers that the operator's proxy adds, lower-case; `x-forwarded-*` means all names that begin `x-forwarded-`. */
  proxyHeaders: readonly string[];
  /** Default headers of the URL group that the message is for (contract M 13.4). */
  groupDefaults?: HeaderMap | undefined;
  /** The URL of a failure callback whose options have no URL: the triggered workflow's own URL. */
  failureUrl?: string;
  /** Set for a publish: selects the headers without a config prefix that are delivered with the message. */
  plainHeaders?: PlainHeaderPolicy;
}

/** The unparsed value of an option, with the header's name as the client knows it, for errors. */
export interface RawOption {
  value: string;
  header: string;
}

export interface ForwardedHeader {
  values: string[];
  /** As the client wrote it: `Upstash-Forward-X-Key`. */
  header: string;
}

/** The options of one message: the published message, or a callback. */
export interface Scope {
  /** The options by lower-case name, including unknown options, which are never read. */
  options: Map<string, Ranked<RawOption>>;
  /** The headers to forward, by canonical name. */
  forwarded: Map<string, Ranked<ForwardedHeader>>;
  callbacks: { [kind in CallbackKind]?: Scope };
  /** The first header of the scope, for errors about the scope as a whole. */
  firstHeader: string;
}

/**
 * The lowest rank takes precedence. The order is: request header, query parameter, group default; within each: `Upstash-`,
 * `Waypost-`, forwarded without a prefix.
 */
type Ranked<T> = T & { rank: number };

export interface Configuration {
  scope: Scope;
  dialect: Dialect;
  contentType: RawOption | undefined;
}

/** Headers with the attributes of an event (CloudEvents, HTTP binding, binary mode). */
const CLOUD_EVENT = /^ce-./i;

const FROM_HEADER = 0;
const FROM_QUERY = 3;
const FROM_GROUP = 6;
const WITHOUT_PREFIX = 2;

/** Callbacks nested more deeply than this are added to the scope at this depth, which is always rejected. */
const SCOPE_DEPTH_MAX = 4;

/**
 * Sorts everything that configures a message by scope and option. Applies the order of precedence, but checks no
 * values.
 */
export function collectConfiguration(input: OptionsInput): Configuration {
  const collector = new Collector(input.plainHeaders?.cloudEvents ?? false);
  const { rawHeaders } = input;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2)
    collector.add(rawHeaders[i] ?? '', rawHeaders[i + 1] ?? '', FROM_HEADER);
  for (const [name, value] of input.queryConfig) collector.add(name, value, FROM_QUERY);
  if (input.groupDefaults !== undefined) {
    for (const [name, values] of Object.entries(input.groupDefaults)) {
      for (const value of values) collector.add(name, value, FROM_GROUP);
    }
  }
  return collector.finish();
}

class Collector {
  readonly #scope = newScope('');
  #contentType: Ranked<RawOption> | undefined;
  // Group defaults do not decide the dialect: the message is published in the dialect of its request.
  #sawUpstash = false;
  #sawWaypost = false;
  readonly #forwardsCloudEvents: boolean;

  constructor(forwardsCloudEvents: boolean) {
    this.#forwardsCloudEvents = forwardsCloudEvents;
  }

  add(name: string, rawValue: string, source: number): void {
    if (!hasConfigPrefix(name)) {
      if (name.length === 12 && name.toLowerCase() === 'content-type') this.#addContentType(rawValue, source);
      else if (this.#forwardsCloudEvents && CLOUD_EVENT.test(name)) {
        const value = trimBlanks(rawValue);
        const plain = { forwardedName: canonicalHeaderName(name), display: name };
        if (value !== '') forward(this.#scope, plain, value, source + WITHOUT_PREFIX);
      }
      return;
    }
    const config = readConfigName(name);
    const value = trimBlanks(rawValue);
    if (value === '') return; // An empty option counts as absent.
    if (config.option.startsWith('telemetry-')) {
      // Telemetry describes the client, not the message, so it does not decide the dialect.
      if (config.option === 'telemetry-sdk')
        keepBest(this.#scope.options, config.option, { value, header: config.display, rank: source });
      return;
    }
    if (source !== FROM_GROUP) {
      if (config.dialect === 'upstash') this.#sawUpstash = true;
      else this.#sawWaypost = true;
    }
    const scope = this.#scopeOf(config);
    const rank = source + (config.dialect === 'upstash' ? 0 : 1);
    if (config.option === 'forward') forward(scope, config, value, rank);
    else if (config.option === 'feature-set')
      keepAll(scope.options, config.option, { value, header: config.display, rank });
    else keepBest(scope.options, config.option, { value, header: config.display, rank });
  }

  finish(): Configuration {
    const dialect = this.#sawWaypost && !this.#sawUpstash ? 'waypost' : 'upstash';
    return { scope: this.#scope, dialect, contentType: this.#contentType };
  }

  #addContentType(rawValue: string, rank: number): void {
    const value = trimBlanks(rawValue);
    if (value === '' || (this.#contentType !== undefined && this.#contentType.rank <= rank)) return;
    this.#contentType = { value, header: 'Content-Type', rank };
  }

  #scopeOf({ path, display }: ConfigName): Scope {
    let scope = this.#scope;
    for (const kind of path.length > SCOPE_DEPTH_MAX ? path.slice(0, SCOPE_DEPTH_MAX) : path) {
      scope = scope.callbacks[kind] ??= newScope(display);
    }
    return scope;
  }
}

function newScope(firstHeader: string): Scope {
  return { options: new Map(), forwarded: new Map(), callbacks: {}, firstHeader };
}

/** Keeps the first value of the lowest rank. */
function keepBest(options: Map<string, Ranked<RawOption>>, option: string, raw: Ranked<RawOption>): void {
  const current = options.get(option);
  if (current === undefined || raw.rank < current.rank) options.set(option, raw);
}

/** Joins all values of the lowest rank to a list: some clients send each element on its own line (contract W 4.2). */
function keepAll(options: Map<string, Ranked<RawOption>>, option: string, raw: Ranked<RawOption>): void {
  const current = options.get(option);
  if (current !== undefined && current.rank === raw.rank) current.value += `,${raw.value}`;
  else keepBest(options, option, raw);
}

/** Keeps all values of the lowest rank: each header line is a value. */
function forward(
  scope: Scope,
  config: Pick<ConfigName, 'forwardedName' | 'display'>,
  value: string,
  rank: number,
): void {
  const current = scope.forwarded.get(config.forwardedName);
  if (current === undefined || rank < current.rank) {
    scope.forwarded.set(config.forwardedName, { values: [value], header: config.display, rank });
  } else if (rank === current.rank) {
    current.values.push(value);
  }
}
