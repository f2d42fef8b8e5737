/** Follows the log of a project across reconnects, without losing or repeating entries. */
import { CommandFailed, EXIT } from '../command.ts';
import { plain } from '../plain.ts';
import { readEvents } from './events.ts';
import type { Call } from './verb.ts';

/** The members that every entry has. `id`: the position of the entry in the log. */
export interface LiveEntry {
  id: string;
  messageId: string;
  workflowRunId?: string;
}

/** The server sends data at least every 15 s. After three times as long without data, the connection counts as broken. */
const SILENCE_MS = 45_000;
const BACK_OFF_MS = [500, 1_000, 2_000, 4_000, 8_000, 15_000] as const;

/** The server's limit for one page. */
const PAGE_MAX = 1_000;
/**
 * An entry may be written after entries with later positions. So a reconnect also reads this many known entries again.
 */
const REREAD_COUNT = 2_000;
/**
 * The number of remembered entries: more than the buffers of a connection hold, since a list may already have returned
 * the buffered entries.
 */
const SEEN_MAX = 50_000;

/**
 * Yields new entries in the chunks in which they arrive. An empty chunk means that the connection is open, and that all
 * later entries will follow. Reconnects while the server is unavailable, unless the first connection failed. Throws
 * `CommandFailed` if the server refuses the request.
 */
export async function* followLog<Entry extends LiveEntry>(call: Call): AsyncGenerator<Entry[]> {
  const { server, terminal } = call;
  const seen = new SeenEntries();
  for (let failures = 0; ; failures += 1) {
    try {
      for await (const events of readConnection(call)) {
        const entries = events.filter(({ name }) => name === 'entry').map(({ data }) => data as Entry);
        const opened = events.find(({ name }) => name === 'open');
        if (opened) {
          terminal.printError(`Following the log at ${server.title}${seen.hasStarted ? ' again' : ''}.\n`);
          failures = 0;
        }
        const isBehind = (opened && seen.hasStarted) || events.some(({ name }) => name === 'lost');
        if (opened) seen.start(opened.id);
        if (isBehind) yield* readMissed<Entry>(call, seen);
        if (opened || entries.length > 0) yield seen.filterNew(entries);
        const ended = events.find(({ name }) => name === 'end');
        if (ended) throw streamEnded((ended.data as { reason: string }).reason);
      }
      throw new CommandFailed(`the connection to ${server.title} ended`, EXIT.unavailable);
    } catch (error) {
      const isTransient = error instanceof CommandFailed && error.exitCode === EXIT.unavailable;
      if (!isTransient || !seen.hasStarted) throw error;
      const backOffMs = BACK_OFF_MS[Math.min(failures, BACK_OFF_MS.length - 1)] ?? 0;
      terminal.printError(`waypost: ${error.message}; trying again in ${backOffMs / 1000} s\n`);
      await new Promise((resolve) => setTimeout(resolve, backOffMs));
    }
  }
}

/** Reads the events of one connection, and closes the connection after `SILENCE_MS` without data. */
async function* readConnection({ server }: Call): ReturnType<typeof readEvents> {
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(), SILENCE_MS);
  try {
    for await (const events of readEvents(await server.read('watchLog', timeout.signal))) {
      timer.refresh();
      yield events;
    }
  } finally {
    clearTimeout(timer);
    timeout.abort(); // closes the connection when the caller stops reading
  }
}

async function* readMissed<Entry extends LiveEntry>({ server }: Call, seen: SeenEntries): AsyncGenerator<Entry[]> {
  for (let cursor = seen.cursor; ; ) {
    const query = new URLSearchParams({ cursor, count: String(PAGE_MAX) });
    const { entries } = await server.ask<{ entries: Entry[] }>('listLiveEntries', { query });
    const fresh = seen.filterNew(entries);
    if (fresh.length > 0) yield fresh;
    const last = entries.at(-1);
    if (last === undefined || entries.length < PAGE_MAX) return;
    cursor = last.id;
  }
}

function streamEnded(reason: string): CommandFailed {
  return new CommandFailed(
    `the server ended the stream: ${plain(reason)}`,
    reason === 'unauthenticated' ? EXIT.denied : EXIT.unavailable,
  );
}

class SeenEntries {
  #start: string | undefined;
  readonly #ids = new Set<string>();

  get hasStarted(): boolean {
    return this.#start !== undefined;
  }

  /** `id`: the position of the last entry before the new entries. Absent if the log is empty. */
  start(id = '0-0'): void {
    this.#start ??= id;
  }

  /**
   * A position in the log before every new entry. Every entry after this position is either new or among the seen
   * entries.
   */
  get cursor(): string {
    if (this.#ids.size <= REREAD_COUNT) return this.#start ?? '';
    return [...this.#ids].slice(-REREAD_COUNT).reduce((first, id) => (isBefore(id, first) ? id : first));
  }

  /** Returns the entries that were not seen before, and marks them as seen. */
  filterNew<Entry extends LiveEntry>(entries: readonly Entry[]): Entry[] {
    const fresh = entries.filter(({ id }) => {
      const isNew = !this.#ids.has(id);
      this.#ids.add(id);
      return isNew;
    });
    for (const id of this.#ids) {
      if (this.#ids.size <= SEEN_MAX) break;
      this.#ids.delete(id);
    }
    return fresh;
  }
}

function isBefore(one: string, other: string): boolean {
  const [[ms = 0, n = 0], [otherMs = 0, otherN = 0]] = [one.split('-').map(Number), other.split('-').map(Number)];
  return ms < otherMs || (ms === otherMs && n < otherN);
}
