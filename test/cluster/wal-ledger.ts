/**
 * A ledger with the position of each acknowledgement in the write-ahead log of the primary. After a failover, it shows for each
 * lost message whether the standby had received it. Positions are bytes since the start of the log.
 *
 * A client never learns the position of its commit, so two positions enclose it: the commit is after everything that was
 * flushed before the request was sent, and within what is flushed when the response has arrived.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { Ledger } from '../crash/ledger.ts';
import type { Cluster } from '../support/postgres/cluster.ts';

/** `unclear`: acknowledged so shortly before the standby's last position, or the primary's death, that nobody can say. */
export type Fate = 'replicated' | 'left behind' | 'unclear';

export interface Bounds {
  /** The commit ends after this position. */
  above: number;
  /** The commit ends here or before; infinite when the primary died before it could be asked. */
  atMost: number;
}

/** Between two questions: messages of so long share a position. */
const ASK_EVERY_MS = 2;
const FLUSHED = "select (pg_current_wal_flush_lsn() - '0/0')::text as position";

export class WalLedger extends Ledger {
  readonly #bounds = new Map<string, Bounds>();
  readonly #flushedBefore = new Map<string, number>();
  /** Acknowledged since the primary was asked last. */
  #unplaced: Bounds[] = [];
  #flushed = 0;

  /** Asks `primary` again and again until it is gone; resolves then. */
  async follow(primary: Cluster): Promise<void> {
    const client = new pg.Client({ connectionString: primary.url() });
    client.on('error', () => undefined); // the question under way says so
    await client.connect();
    try {
      for (;;) {
        const asked = this.#unplaced;
        this.#unplaced = [];
        const { rows } = await client.query<{ position: string }>(FLUSHED);
        this.#flushed = Number(rows[0]?.position);
        for (const bounds of asked) bounds.atMost = this.#flushed;
        await sleep(ASK_EVERY_MS);
      }
    } catch {
      await client.end().catch(() => undefined);
    }
  }

  override attempted(tag: string): void {
    super.attempted(tag);
    this.#flushedBefore.set(tag, this.#flushed);
  }

  override acked(tag: string, messageId: string): void {
    super.acked(tag, messageId);
    if (this.#bounds.has(messageId)) return; // the answer to the same publish once more
    const bounds = { above: this.#flushedBefore.get(tag) ?? 0, atMost: Infinity };
    this.#bounds.set(messageId, bounds);
    this.#unplaced.push(bounds);
  }

  boundsOf(messageId: string): Bounds {
    return this.#bounds.get(messageId) ?? { above: 0, atMost: Infinity };
  }

  /** Whether a standby that has everything up to `position`, and nothing after it, was sent the commit. */
  fateOf(messageId: string, position: number): Fate {
    const { above, atMost } = this.boundsOf(messageId);
    if (atMost <= position) return 'replicated';
    return above >= position ? 'left behind' : 'unclear';
  }
}
