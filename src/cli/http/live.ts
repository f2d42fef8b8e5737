/** Follows the log of a project over connections that may break: nothing of it is lost, and nothing comes twice. */
import { CommandFailed, EXIT } from '../command.ts';
import { plain } from '../plain.ts';
import { readEvents } from './events.ts';
import type { Call } from './verb.ts';

/** What every entry has; `id` is its place in the log. */
export interface LiveEntry {
  id: string;
  messageId: string;
  workflowRunId?: string;
}

/** The server says something each 15 s; after three times as long it is gone. */
const SILENCE_MS = 45_000;
const BACK_OFF_MS = [500, 1_000, 2_000, 4_000, 8_000, 15_000] as const;

/** What the server lists at a time. */
const PAGE_MAX = 1_000;
/** An entry may be written after others that are later in the log. The server looks back so far too. */
const LOOK_BACK = 2_000;
/** More than the buffers of a connection hold of entries that a list has told already. */
const REMEMBERED_MAX = 50_000;

/**
 * The entries that are written from now on, as they come together; nothing together means that all from here on are told. Tries
 * again for as long as the server is away, unless it was never there. Throws `CommandFailed` when it refuses.
 */
export async function* followLog<Entry extends LiveEntry>(call: Call): AsyncGenerator<Entry[]> {
  const { server, terminal } = call;
  const seen = new SeenEntries();
  for (let failures = 0; ; failures += 1) {
    try {
      for await (const events of readPieces(call)) {
        const entries = events.filter(({ name }) => name === 'entry').map(({ data }) => data as Entry);
        const opened = events.find(({ name }) => name === 'open');
        if (opened) {
          terminal.complain(`Following the log at ${server.title}${seen.hasBegun ? ' again' : ''}.\n`);
          failures = 0;
        }
        const isBehind = (opened && seen.hasBegun) || events.some(({ name }) => name === 'lost');
        if (opened) seen.begin(opened.id);
        if (isBehind) yield* missed<Entry>(call, seen);
        if (opened || entries.length > 0) yield seen.take(entries);
        const ended = events.find(({ name }) => name === 'end');
        if (ended) throw endOf((ended.data as { reason: string }).reason);
      }
      throw new CommandFailed(`the connection to ${server.title} ended`, EXIT.unavailable);
    } catch (error) {
      const isPassing = error instanceof CommandFailed && error.exitCode === EXIT.unavailable;
      if (!isPassing || !seen.hasBegun) throw error;
      const backOffMs = BACK_OFF_MS[Math.min(failures, BACK_OFF_MS.length - 1)] ?? 0;
      terminal.complain(`waypost: ${error.message}; trying again in ${backOffMs / 1000} s\n`);
      await new Promise((resolve) => setTimeout(resolve, backOffMs));
    }
  }
}

/** One connection, which is given up when nothing comes for long. */
async function* readPieces({ server }: Call): ReturnType<typeof readEvents> {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), SILENCE_MS);
  try {
    for await (const events of readEvents(await server.read('watchLog', silence.signal))) {
      timer.refresh();
      yield events;
    }
  } finally {
    clearTimeout(timer);
    silence.abort(); // who stops reading closes the connection
  }
}

async function* missed<Entry extends LiveEntry>({ server }: Call, seen: SeenEntries): AsyncGenerator<Entry[]> {
  for (let cursor = seen.place; ; ) {
    const query = new URLSearchParams({ cursor, count: String(PAGE_MAX) });
    const { entries } = await server.ask<{ entries: Entry[] }>('listLiveEntries', { query });
    const fresh = seen.take(entries);
    if (fresh.length > 0) yield fresh;
    const last = entries.at(-1);
    if (last === undefined || entries.length < PAGE_MAX) return;
    cursor = last.id;
  }
}

function endOf(reason: string): CommandFailed {
  return new CommandFailed(
    `the server ended the stream: ${plain(reason)}`,
    reason === 'unauthenticated' ? EXIT.denied : EXIT.unavailable,
  );
}

class SeenEntries {
  #begin: string | undefined;
  readonly #ids = new Set<string>();

  get hasBegun(): boolean {
    return this.#begin !== undefined;
  }

  /** `id`: the last entry of those before; `undefined` in an empty log. */
  begin(id = '0-0'): void {
    this.#begin ??= id;
  }

  /** A place in the log: all that is new comes after it, and all that is after it was seen here or is new. */
  get place(): string {
    if (this.#ids.size <= LOOK_BACK) return this.#begin ?? '';
    return [...this.#ids].slice(-LOOK_BACK).reduce((first, id) => (isBefore(id, first) ? id : first));
  }

  /** Those that were not seen before. */
  take<Entry extends LiveEntry>(entries: readonly Entry[]): Entry[] {
    const fresh = entries.filter(({ id }) => {
      const isNew = !this.#ids.has(id);
      this.#ids.add(id);
      return isNew;
    });
    for (const id of this.#ids) {
      if (this.#ids.size <= REMEMBERED_MAX) break;
      this.#ids.delete(id);
    }
    return fresh;
  }
}

function isBefore(one: string, other: string): boolean {
  const [[ms = 0, n = 0], [otherMs = 0, otherN = 0]] = [one.split('-').map(Number), other.split('-').map(Number)];
  return ms < otherMs || (ms === otherMs && n < otherN);
}
