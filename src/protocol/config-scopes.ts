import { type CallbackKind, type ConfigName, hasConfigPrefix, readConfigName } from './config-names.ts';
import { trimBlanks } from './headers.ts';
import type { Dialect, HeaderMap } from './settings.ts';

/** What a publish brings along, before any of it is checked. */
export interface OptionsInput {
  /** Flat list of names and values, as Node gives it. */
  rawHeaders: readonly string[];
  /** Config parameters of the query: lower-case header name and decoded value. */
  queryConfig: readonly (readonly [string, string])[];
  /** Whether `qstash_token` was used; if so, an `Authorization` header is the caller's own. */
  tokenInQuery: boolean;
  /** Headers that the operator's proxy adds, lower-case; `x-forwarded-*` stands for all with that beginning. */
  proxyHeaders: readonly string[];
  /** Default headers of the URL group that is published to (contract M 13.4). */
  groupDefaults?: HeaderMap | undefined;
  /** Whom failures are told when there are options for that and no URL: of a workflow that is triggered, its own. */
  failureUrl?: string;
}

/** One option's value and the name by which the caller knows it. */
export interface Given {
  value: string;
  header: string;
}

export interface Forwarded {
  values: string[];
  /** As the caller wrote it: `Upstash-Forward-X-Key`. */
  header: string;
}

/** The options of one message: the published one, or a callback. */
export interface Scope {
  /** By lower-case option name; the unknown ones are in here too, and nobody asks for them. */
  options: Map<string, Ranked<Given>>;
  /** By canonical name. */
  forwarded: Map<string, Ranked<Forwarded>>;
  callbacks: { [kind in CallbackKind]?: Scope };
  /** The first header that belongs to the scope, for error texts about the scope as a whole. */
  firstHeader: string;
}

/** A lower rank wins: a request header over a query parameter over a group default, in each `Upstash-` over `Waypost-`. */
type Ranked<T> = T & { rank: number };

export interface Configuration {
  scope: Scope;
  dialect: Dialect;
  contentType: Given | undefined;
}

const FROM_HEADER = 0;
const FROM_QUERY = 2;
const FROM_GROUP = 4;

/** Callbacks of callbacks deeper than this are collected into the last scope, which exists only to be refused. */
const SCOPE_DEPTH_MAX = 4;

/** Sorts everything that configures a message by scope and option; checks nothing but the order of precedence. */
export function collectConfiguration(input: OptionsInput): Configuration {
  const collector = new Collector();
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
  #contentType: Ranked<Given> | undefined;
  // Group defaults do not count: the message is published in the dialect of its request.
  #sawUpstash = false;
  #sawWaypost = false;

  add(name: string, sent: string, source: number): void {
    if (!hasConfigPrefix(name)) {
      if (name.length === 12 && name.toLowerCase() === 'content-type') this.#addContentType(sent, source);
      return;
    }
    const config = readConfigName(name);
    const value = trimBlanks(sent);
    if (value === '') return; // counts as absent
    if (config.option.startsWith('telemetry-')) {
      // It says something about the client, not about the message, and so nothing of the dialect either.
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

  #addContentType(sent: string, rank: number): void {
    const value = trimBlanks(sent);
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

/** The first value of the best rank stays. */
function keepBest(options: Map<string, Ranked<Given>>, option: string, given: Ranked<Given>): void {
  const known = options.get(option);
  if (known === undefined || given.rank < known.rank) options.set(option, given);
}

/** All of the best rank stay, as one list: some clients write each element on a line of its own (contract W 4.2). */
function keepAll(options: Map<string, Ranked<Given>>, option: string, given: Ranked<Given>): void {
  const known = options.get(option);
  if (known !== undefined && known.rank === given.rank) known.value += `,${given.value}`;
  else keepBest(options, option, given);
}

/** All values of the best rank stay: several lines of one name are several values. */
function forward(scope: Scope, config: ConfigName, value: string, rank: number): void {
  const known = scope.forwarded.get(config.forwardedName);
  if (known === undefined || rank < known.rank) {
    scope.forwarded.set(config.forwardedName, { values: [value], header: config.display, rank });
  } else if (rank === known.rank) {
    known.values.push(value);
  }
}
