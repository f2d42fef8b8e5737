/**
 * What in a request means nothing here? The answer names it in `Waypost-Ignored`, so that a mistyped option does not pass in
 * silence. What a route knows is what the route table says that it takes.
 */
import type { EventLog } from '../engine/ports.ts';
import { type ConfigName, hasConfigPrefix, readConfigName } from '../protocol/config-names.ts';
import { isConnectionHeader } from '../protocol/headers.ts';
import { memo } from '../protocol/memo.ts';
import { queryParameters } from '../protocol/request-target.ts';
import type { Answer } from './answer.ts';
import { type ConfigHeader, OF_EVERY_REQUEST } from './config-headers.ts';
import type { Takes } from './takes.ts';

const IGNORED = 'Waypost-Ignored';

/** An answer names at most so many, each cut to so many characters: a request can have thousands. */
const NAMES_MAX = 16;
const NAME_LENGTH_MAX = 64;

/** Options that the log has named; past so many it is silent, since a stranger may make up any number. */
const LOGGED_MAX = 500;

const NOT_OF_A_TOKEN = /[^!#$%&'*+\-.^_`|~0-9A-Za-z]/g;

/** What one request brought in vain. Names are written as tokens of HTTP: whatever was sent, they forge no header and no line. */
export class Ignored {
  // Made for each request, and nearly always empty.
  #options: Set<string> | undefined;
  #named: Set<string> | undefined;
  #isCut = false;

  /** Options that do not exist, or not here. */
  get options(): Iterable<string> {
    return this.#options ?? [];
  }

  /** Whether more names change nothing. */
  get isFull(): boolean {
    return this.#isCut;
  }

  /** `item`: of a batch, counted from 0. */
  addOption(name: string, item?: number): void {
    const token = tokenOf(name);
    this.#options ??= new Set();
    if (this.#options.size < NAMES_MAX) this.#options.add(token);
    this.#add(token, item);
  }

  /** A header that was to be forwarded and belongs to a connection. */
  addOfConnection(name: string, item?: number): void {
    this.#add(tokenOf(name), item);
  }

  /** `given` with the names in its header, if there are any. */
  nameIn(given: Answer): Answer {
    if (this.#named === undefined) return given;
    const names = this.#isCut ? [...this.#named, '...'] : [...this.#named];
    return { ...given, headers: { ...given.headers, [IGNORED]: names.join(', ') } };
  }

  #add(token: string, item: number | undefined): void {
    const named = item === undefined ? token : `${token};item=${item}`;
    this.#named ??= new Set();
    if (this.#named.size < NAMES_MAX) this.#named.add(named);
    else this.#isCut ||= !this.#named.has(named);
  }
}

function tokenOf(name: string): string {
  return name.slice(0, NAME_LENGTH_MAX).replace(NOT_OF_A_TOKEN, '_');
}

/** What the name of a header says of it. */
type Verdict =
  | { kind: 'none' }
  | { kind: 'option' | 'ofConnection'; name: string }
  /** It makes the message one of a run. */
  | { kind: 'run' };

const NONE: Verdict = { kind: 'none' };

/** The config headers that mean something in one place. */
export class KnownHeaders {
  readonly #own = new Set<string>();
  readonly #ofCallbacks = new Set<string>();
  readonly #judge: (name: string) => Verdict;

  constructor(known: readonly ConfigHeader[]) {
    for (const { name } of [...known, ...OF_EVERY_REQUEST]) {
      const { path, option } = readConfigName(name);
      if (path.length === 0) this.#own.add(option);
      // A callback has callbacks of its own.
      if (path.length > 0 || option === 'callback' || option === 'failure-callback') this.#ofCallbacks.add(option);
    }
    this.#judge = memo((name) => this.#verdictOn(name));
  }

  /** Adds what is ignored of a flat list of names and values. An empty value counts as absent. */
  look(rawHeaders: readonly string[], ignored: Ignored, item?: number): void {
    if (ignored.isFull) return;
    const ofConnection: string[] = [];
    let isOfRun = false;
    for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
      const name = rawHeaders[at] ?? '';
      if (!mayBeConfig(name) || rawHeaders[at + 1] === '') continue;
      const verdict = this.#judge(name);
      if (verdict.kind === 'option') ignored.addOption(verdict.name, item);
      else if (verdict.kind === 'ofConnection') ofConnection.push(verdict.name);
      else isOfRun ||= verdict.kind === 'run';
    }
    // A library forwards all that its run was begun with, and knows what of it goes no further (contract W 9.4).
    if (!isOfRun) for (const name of ofConnection) ignored.addOfConnection(name, item);
  }

  knows({ path, option }: ConfigName): boolean {
    return (path.length === 0 ? this.#own : this.#ofCallbacks).has(option);
  }

  #verdictOn(name: string): Verdict {
    if (!hasConfigPrefix(name)) return NONE;
    const config = readConfigName(name);
    if (!this.knows(config)) return { kind: 'option', name: config.display };
    const { path, option, forwardedName } = config;
    if (option === 'forward' && isConnectionHeader(forwardedName.toLowerCase())) {
      return { kind: 'ofConnection', name: forwardedName };
    }
    return path.length === 0 && option === 'workflow-init' ? { kind: 'run' } : NONE;
  }
}

/** Most headers of a request end here: only a u or a w goes on. */
function mayBeConfig(name: string): boolean {
  const first = name.charCodeAt(0) | 0x20;
  return first === 0x75 || first === 0x77;
}

/** What a request to one route may hold. */
export class KnownOptions {
  readonly #headers: KnownHeaders;
  readonly #parameters: ReadonlySet<string>;
  readonly #hasDestination: boolean;
  readonly #isConfiguredByQuery: boolean;

  constructor({ path, takes = {} }: { path: string; takes?: Takes }) {
    const { configHeaders = [], isConfiguredByQuery = false, filters, query = [] } = takes;
    this.#headers = new KnownHeaders(configHeaders);
    this.#parameters = new Set([...(filters?.rows ?? []), ...query].map(({ name }) => name));
    this.#hasDestination = path.endsWith('*');
    this.#isConfiguredByQuery = isConfiguredByQuery || this.#hasDestination;
  }

  /** Adds what is ignored of a request. */
  look(rawHeaders: readonly string[], rawQuery: string, ignored: Ignored): void {
    this.#headers.look(rawHeaders, ignored);
    if (rawQuery === '') return;
    for (const name of queryParameters(rawQuery).keys()) {
      if (name !== '' && name.toLowerCase() !== 'qstash_token') this.#lookAt(name, ignored);
    }
  }

  #lookAt(name: string, ignored: Ignored): void {
    if (this.#isConfiguredByQuery && hasConfigPrefix(name)) {
      const config = readConfigName(name);
      if (!this.#headers.knows(config)) ignored.addOption(config.display);
    } else if (!this.#hasDestination && !this.#parameters.has(name)) {
      ignored.addOption(name);
    }
  }
}

/** Says once of each option that it was ignored, by whomever and however often it is sent. */
export class IgnoredLog {
  readonly #log: EventLog;
  readonly #logged = new Set<string>();

  constructor(log: EventLog) {
    this.#log = log;
  }

  note(route: string, { options }: Ignored): void {
    for (const option of options) {
      const known = `${route} ${option}`;
      if (this.#logged.size >= LOGGED_MAX || this.#logged.has(known)) continue;
      this.#logged.add(known);
      this.#log.warn('option_ignored', { route, option });
    }
  }
}
