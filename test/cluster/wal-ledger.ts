/**
 * A ledger with the position of each acknowledgement in the write-ahead log of the primary. After a failover, the ledger
 * shows for each lost message whether the standby had received the message. Positions are in bytes, from the start of the
 * log.
 *
 * A client never learns the position of its commit, so two positions enclose the commit: it is after everything that was
 * flushed before the request was sent, and in the part of the log that is flushed when the response has arrived.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { Ledger } from '../crash/ledger.ts';
import type { Cluster } from '../support/postgres/cluster.ts';

/** `unclear`: acknowledged too shortly before the standby's last position or the primary's death to decide. */
export type Fate = 'replicated' | 'left behind' | 'unclear';

export interface Bounds {
  /** The commit ends after this position. */
  above: number;
  /** The commit ends at or before this position; infinite if the primary died before it could be queried. */
  atMost: number;
}

/** The time between two queries. Messages of this time share a position. */
const ASK_EVERY_MS = 2;
const FLUSHED = "select (pg_current_wal_flush_lsn() - '0/0')::text as position";

export class WalLedger extends Ledger {
  readonly #bounds = new Map<string, Bounds>();
  readonly #flushedBefore = new Map<string, number>();
  /** Messages acknowledged since the last query. */
  #unplaced: Bounds[] = [];
  #flushed = 0;

  /** Queries `primary` repeatedly, and resolves when it is gone. */
  async follow(primary: Cluster): Promise<void> {
    const client = new pg.Client({ connectionString: primary.url() });
    client.on('error', () => undefined); // the running query reports it
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
    if (this.#bounds.has(messageId)) return; // a repeated response to the same publish
    const bounds = { above: this.#flushedBefore.get(tag) ?? 0, atMost: Infinity };
    this.#bounds.set(messageId, bounds);
    this.#unplaced.push(bounds);
  }

  boundsOf(messageId: string): Bounds {
    return this.#bounds.get(messageId) ?? { above: 0, atMost: Infinity };
  }

  /** Whether the commit was sent to a standby that has exactly the log up to `position`. */
  fateOf(messageId: string, position: number): Fate {
    const { above, atMost } = this.boundsOf(messageId);
    if (atMost <= position) return 'replicated';
    return above >= position ? 'left behind' : 'unclear';
  }
}
