/**
 * Makes the bodies of step deliveries: the journal up to the step (contract W 8.1). The worker that delivers an entry has
 * nearly always just saved this entry, and has delivered the previous entry. So the worker caches recent journals,
 * encoded, up to a total size, and reads only missing entries from the store.
 */
import type { Store } from '../../store/store.ts';
import { encodeEntry, joinEntries } from '../../workflow/journal.ts';
import type { JournalEntry, RunKey } from '../../workflow/model.ts';
import type { Claimed, ProjectId } from '../model.ts';

/** The maximum bytes of all cached entries. */
const BYTES_MAX = 32 * 1024 * 1024;
/** A journal with more bytes than this is not cached but read each time, because it would evict all other journals. */
const JOURNAL_BYTES_MAX = BYTES_MAX / 8;
/** The approximate memory overhead of a journal, and of each entry, in addition to the bytes of entries. */
const JOURNAL_OVERHEAD = 192;
const ENTRY_OVERHEAD = 512;
/** An eviction removes many journals at once, because a `Map` skips all removed keys to find its oldest key. */
const BYTES_AFTER_EVICTION = (BYTES_MAX * 7) / 8;

interface EncodedEntry {
  position: number;
  /**
   * A copy of the bytes: a small `Buffer` is a view of a larger buffer, and would keep all of the larger buffer in
   * memory.
   */
  encoded: Uint8Array;
}

/** The entries up to the position `upTo`, without the entries that deliveries omit. */
interface Journal {
  entries: readonly EncodedEntry[];
  upTo: number;
  bytes: number;
}

const EMPTY_BODY = new Uint8Array(0);
const EMPTY_JOURNAL: Journal = { entries: [], upTo: -1, bytes: JOURNAL_OVERHEAD };

export class JournalBodies {
  readonly #store: { runs: Pick<Store['runs'], 'readJournal'> };
  /** The most recently used journal is last. */
  readonly #journals = new Map<RunKey, Journal>();
  #bytes = 0;

  constructor(store: { runs: Pick<Store['runs'], 'readJournal'> }) {
    this.#store = store;
  }

  /** Adds a saved entry to the cached journal of its run. */
  note(runKey: RunKey, entry: JournalEntry): void {
    const cached = this.#journals.get(runKey) ?? EMPTY_JOURNAL;
    if (cached.upTo === entry.position - 1) this.#cache(runKey, withEntries(cached, [entry], entry.position));
  }

  forget(runKey: RunKey): void {
    const cached = this.#journals.get(runKey);
    if (!cached) return;
    this.#bytes -= cached.bytes;
    this.#journals.delete(runKey);
  }

  /**
   * Returns the journal to send as the body, or undefined if the message's own body is sent. Throws `StoreUnavailable`.
   */
  bodyOf({ message, journal }: Claimed): undefined | Uint8Array | Promise<Uint8Array> {
    const { run } = message.settings;
    if (!run || !journal || run.callType === 'toCallback') return undefined;
    if (journal.bytes === 0) return EMPTY_BODY;
    if (run.callType === 'fromCallback') return undefined;
    // Another worker may still replace the first message of the run, so a cached journal could be outdated.
    if (run.init === 'unknown') return this.#readOnce(message.projectId, run.key, journal.position);
    const cached = this.#journals.get(run.key);
    if (!cached || cached.upTo < journal.position) return this.#read(message.projectId, run.key, journal.position);
    this.#journals.delete(run.key);
    this.#journals.set(run.key, cached);
    return bodyUpTo(cached, journal.position);
  }

  /** Like `bodyOf`, but the journal is without the entries up to `afterPosition`. Throws `StoreUnavailable`. */
  async entriesOf({ message, journal }: Claimed, afterPosition: number): Promise<undefined | Uint8Array> {
    const { run } = message.settings;
    if (!run || !journal || journal.bytes === 0) return undefined;
    const cached = this.#journals.get(run.key);
    const range = { afterPosition, toPosition: journal.position };
    if (cached && cached.upTo >= journal.position) return bodyOfRange(cached, range);
    const entries = await this.#store.runs.readJournal({ projectId: message.projectId, runKey: run.key, ...range });
    return bodyOfRange(withEntries(EMPTY_JOURNAL, entries, journal.position), range);
  }

  async #readOnce(projectId: ProjectId, runKey: RunKey, position: number): Promise<Uint8Array> {
    const entries = await this.#store.runs.readJournal({
      projectId,
      runKey,
      afterPosition: EMPTY_JOURNAL.upTo,
      toPosition: position,
    });
    return bodyUpTo(withEntries(EMPTY_JOURNAL, entries, position), position);
  }

  async #read(projectId: ProjectId, runKey: RunKey, position: number): Promise<Uint8Array> {
    const cached = this.#journals.get(runKey);
    const { upTo } = cached ?? EMPTY_JOURNAL;
    const missing = await this.#store.runs.readJournal({
      projectId,
      runKey,
      afterPosition: upTo,
      toPosition: position,
    });
    const whole = withEntries(cached ?? EMPTY_JOURNAL, missing, position);
    // If the cached journal has changed during the read, the cached one may have more entries, and is kept.
    if (this.#journals.get(runKey) === cached) this.#cache(runKey, whole);
    return bodyUpTo(whole, position);
  }

  #cache(runKey: RunKey, journal: Journal): void {
    this.forget(runKey);
    if (journal.bytes > JOURNAL_BYTES_MAX) return;
    this.#journals.set(runKey, journal);
    this.#bytes += journal.bytes;
    if (this.#bytes <= BYTES_MAX) return;
    for (const oldest of this.#journals.keys()) {
      this.forget(oldest);
      if (this.#bytes <= BYTES_AFTER_EVICTION) return;
    }
  }
}

function withEntries({ entries, bytes }: Journal, added: readonly JournalEntry[], upTo: number): Journal {
  const encoded = added.map((entry) => ({ position: entry.position, encoded: new Uint8Array(encodeEntry(entry)) }));
  const addedBytes = encoded.reduce((sum, entry) => sum + entry.encoded.length + ENTRY_OVERHEAD, 0);
  return { entries: [...entries, ...encoded], upTo, bytes: bytes + addedBytes };
}

function bodyOfRange(
  { entries }: Journal,
  { afterPosition, toPosition }: { afterPosition: number; toPosition: number },
): Uint8Array {
  const selected = entries.filter(({ position }) => position > afterPosition && position <= toPosition);
  return joinEntries(selected.map(({ encoded }) => encoded));
}

function bodyUpTo({ entries, upTo }: Journal, position: number): Uint8Array {
  const selected = upTo === position ? entries : entries.filter((entry) => entry.position <= position);
  return joinEntries(selected.map(({ encoded }) => encoded));
}
