/**
 * Finds the options of a request that the server ignores. The response names them in `Waypost-Ignored`, so that the
 * client notices a mistyped option. Each route lists the options that it knows.
 */
import type { EventLog } from '../../engine/ports.ts';
import { isConnectionHeader, trimBlanks } from '../../protocol/headers.ts';
import { memo } from '../../protocol/memo.ts';
import { type ConfigName, hasConfigPrefix, readConfigName } from '../../protocol/options/config-names.ts';
import { queryParameters } from '../../protocol/urls/request-target.ts';
import type { AcceptedInput } from '../messages/filters.ts';
import type { ApiResponse } from '../response.ts';
import { CLIENT_HEADERS, type ConfigHeader } from './config-headers.ts';

const IGNORED = 'Waypost-Ignored';

/** Limits on the number and the length of the names in a response, since a request can have thousands. */
const NAMES_MAX = 16;
const NAME_LENGTH_MAX = 64;

/** Maximum number of options that the log names, since clients can invent any number. */
const LOGGED_MAX = 500;

const NOT_TOKEN_CHARACTER = /[^!#$%&'*+\-.^_`|~0-9A-Za-z]/g;

/**
 * The ignored options of one request. Names are converted to HTTP tokens, so that no name can forge a header or a log
 * line.
 */
export class Ignored {
  // Created on first use, because nearly all requests have no ignored options.
  #options: Set<string> | undefined;
  #named: Set<string> | undefined;
  #isTruncated = false;

  /** Options that this route does not know. */
  get options(): Iterable<string> {
    return this.#options ?? [];
  }

  /** True if the response cannot contain further names. */
  get isFull(): boolean {
    return this.#isTruncated;
  }

  /** `item`: index of the batch item. */
  addOption(name: string, item?: number): void {
    const token = tokenOf(name);
    this.#options ??= new Set();
    if (this.#options.size < NAMES_MAX) this.#options.add(token);
    this.#add(token, item);
  }

  /** Adds a header that the client wants forwarded but the endpoint does not receive. */
  addDropped(name: string, item?: number): void {
    this.#add(tokenOf(name), item);
  }

  /** The response with the names in a header, if there are any. */
  addTo(response: ApiResponse): ApiResponse {
    if (this.#named === undefined) return response;
    const names = this.#isTruncated ? [...this.#named, '...'] : [...this.#named];
    return { ...response, headers: { ...response.headers, [IGNORED]: names.join(', ') } };
  }

  #add(token: string, item: number | undefined): void {
    const named = item === undefined ? token : `${token};item=${item}`;
    this.#named ??= new Set();
    if (this.#named.size < NAMES_MAX) this.#named.add(named);
    else this.#isTruncated ||= !this.#named.has(named);
  }
}

function tokenOf(name: string): string {
  return name.slice(0, NAME_LENGTH_MAX).replace(NOT_TOKEN_CHARACTER, '_');
}

/** The effect of a header, as far as its name determines it. */
type HeaderEffect =
  | { kind: 'none' }
  /** `option`: an unknown option. `dropped`: a header that is never forwarded. `forwarded`: forwarded unless its value is empty. */
  | { kind: 'option' | 'dropped' | 'forwarded'; name: string }
  /**
   * `run`: makes the message part of a run. `forwardsAll`: if its value is true, forwards the request's other headers.
   */
  | { kind: 'run' | 'forwardsAll' };

const NONE: HeaderEffect = { kind: 'none' };

/** The config headers that one kind of request knows. */
export class KnownHeaders {
  readonly #own = new Set<string>();
  readonly #ofCallbacks = new Set<string>();
  readonly #cachedEffectOf: (name: string) => HeaderEffect;

  constructor(known: readonly ConfigHeader[]) {
    for (const { name } of [...known, ...CLIENT_HEADERS]) {
      const { path, option } = readConfigName(name);
      if (path.length === 0) this.#own.add(option);
      // A callback may have callbacks of its own.
      if (path.length > 0 || option === 'callback' || option === 'failure-callback') this.#ofCallbacks.add(option);
    }
    this.#cachedEffectOf = memo((name) => this.#effectOf(name));
  }

  /**
   * Adds the ignored headers of a flat list of names and values to `ignored`. An option with an empty value counts as
   * absent. A forwarded header with an empty value is added, because it is not sent.
   */
  findIgnored(rawHeaders: readonly string[], ignored: Ignored, item?: number): void {
    if (ignored.isFull) return;
    const dropped: string[] = [];
    let isOfRun = false;
    let isEncoded = false;
    let isEncodingForwarded = !this.#own.has('forward');
    for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
      const name = rawHeaders[at] ?? '';
      const value = rawHeaders[at + 1] ?? '';
      isEncoded ||= isContentEncoding(name) && value !== '';
      if (!mayBeConfig(name)) continue;
      const effect = this.#cachedEffectOf(name);
      const isEmpty = value === '' || trimBlanks(value) === '';
      if (effect.kind === 'dropped' || (effect.kind === 'forwarded' && isEmpty)) dropped.push(effect.name);
      else if (isEmpty) continue;
      else if (effect.kind === 'option') ignored.addOption(effect.name, item);
      else if (effect.kind === 'forwarded') isEncodingForwarded ||= isContentEncoding(effect.name);
      else if (effect.kind === 'forwardsAll') isEncodingForwarded ||= value.toLowerCase() === 'true';
      else isOfRun ||= effect.kind === 'run';
    }
    if (isEncoded && !isEncodingForwarded) dropped.push('Content-Encoding');
    // A workflow library forwards all headers of the trigger of its run, and knows that some are dropped (contract W 9.4).
    if (!isOfRun) for (const name of dropped) ignored.addDropped(name, item);
  }

  #knows({ path, option }: ConfigName): boolean {
    return (path.length === 0 ? this.#own : this.#ofCallbacks).has(option);
  }

  #effectOf(name: string): HeaderEffect {
    if (!hasConfigPrefix(name)) return NONE;
    const config = readConfigName(name);
    if (!this.#knows(config)) return { kind: 'option', name: config.display };
    const { path, option, forwardedName } = config;
    if (option === 'forward') return { kind: isDropped(forwardedName) ? 'dropped' : 'forwarded', name: forwardedName };
    if (path.length > 0) return NONE;
    if (option === 'workflow-init') return { kind: 'run' };
    return option === 'header-forward' ? { kind: 'forwardsAll' } : NONE;
  }
}

/** Accept-Encoding is set by the server, because every delivery asks for an uncompressed response (contract M 7.2). */
function isDropped(forwardedName: string): boolean {
  const lowerName = forwardedName.toLowerCase();
  return lowerName === 'accept-encoding' || isConnectionHeader(lowerName);
}

/** A body is delivered unchanged, so without this header the endpoint cannot decode a compressed body. */
function isContentEncoding(name: string): boolean {
  return name.length === 16 && name.toLowerCase() === 'content-encoding';
}

/** A quick first check: config headers begin with a u or a w. */
function mayBeConfig(name: string): boolean {
  const first = name.charCodeAt(0) | 0x20;
  return first === 0x75 || first === 0x77;
}

/** The config headers and query parameters that one route knows. */
export class KnownOptions {
  readonly #headers: KnownHeaders;
  readonly #parameters: ReadonlySet<string>;
  readonly #ids: ReadonlySet<string>;
  readonly #usedWithIds: ReadonlySet<string>;
  readonly #hasDestination: boolean;
  readonly #isConfiguredByQuery: boolean;

  constructor({ path, takes = {} }: { path: string; takes?: AcceptedInput }) {
    const { configHeaders = [], isConfiguredByQuery = false, filters, query = [] } = takes;
    this.#headers = new KnownHeaders(configHeaders);
    const parameters = [...(filters?.rows ?? []), ...query];
    this.#parameters = new Set(parameters.map(({ name }) => name));
    this.#ids = new Set(parameters.flatMap(({ name, emptyIds }) => (emptyIds ? name : [])));
    this.#usedWithIds = filters?.usedWithIds ?? new Set();
    this.#hasDestination = path.endsWith('*');
    this.#isConfiguredByQuery = isConfiguredByQuery || this.#hasDestination;
  }

  /** Adds the ignored options of a request to `ignored`. */
  findIgnored(rawHeaders: readonly string[], rawQuery: string, ignored: Ignored): void {
    const config: string[] = [];
    const unknown: string[] = [];
    const otherFilters: string[] = [];
    let isById = false;
    for (const [name, values] of rawQuery === '' ? [] : queryParameters(rawQuery)) {
      if (name === '' || name.toLowerCase() === 'qstash_token') continue;
      if (this.#isConfiguredByQuery && hasConfigPrefix(name)) config.push(name, values.join(''));
      else if (this.#ids.has(name)) isById ||= values.some((value) => value !== '');
      else if (!this.#parameters.has(name)) {
        if (!this.#hasDestination) unknown.push(name);
      } else if (!this.#usedWithIds.has(name)) otherFilters.push(name);
    }
    this.#headers.findIgnored(config.length === 0 ? rawHeaders : [...rawHeaders, ...config], ignored);
    for (const name of unknown) ignored.addOption(name);
    // If ids are given, the other filters are ignored (contract M 21.2).
    if (isById) for (const name of otherFilters) ignored.addDropped(name);
  }
}

/** Logs each ignored option once for each route. */
export class IgnoredLog {
  readonly #log: EventLog;
  readonly #logged = new Set<string>();

  constructor(log: EventLog) {
    this.#log = log;
  }

  logOnce({ method, path }: { method: string; path: string }, { options }: Ignored): void {
    for (const option of options) {
      const route = `${method} ${path}`;
      const key = `${route} ${option}`;
      if (this.#logged.size >= LOGGED_MAX || this.#logged.has(key)) continue;
      this.#logged.add(key);
      this.#log.warn('option_ignored', { route, option });
    }
  }
}
