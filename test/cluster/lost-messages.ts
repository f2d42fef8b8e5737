/** Reads what the former primary and the promoted standby know of a lost message. */
import { anyLogStateOf } from '../../src/store/operations/messages/rows.ts';
import type { Cluster } from '../support/postgres/cluster.ts';
import type { Fate, WalLedger } from './wal-ledger.ts';

export interface Databases {
  /** The old primary, started again without clients. */
  left: Cluster;
  /** The promoted standby. */
  taken: Cluster;
  database: string;
  /** The log position at which `taken` was promoted and its log diverged from the log of `left`. */
  position: number;
  /** The first transaction id that `taken` assigned itself. */
  firstXid: string;
}

/** The transaction that saved the message in the old primary, and its status in the promoted standby. */
const SAVED_BY = 'select xmin::text as xid from contents where id = $1';
const HAS_HEARD = `select cast($1 as text)::xid8 < cast($2 as text)::xid8
  and pg_xact_status(cast($1 as text)::xid8) = 'committed' as heard`;

/** Decides by transaction id where the log positions are inconclusive. */
export async function fateOf(messageId: string, ledger: WalLedger, databases: Databases): Promise<Fate> {
  const { left, taken, database, position, firstXid } = databases;
  const fate = ledger.fateOf(messageId, position);
  if (fate !== 'unclear') return fate;
  const [saved] = await left.query(SAVED_BY, [messageId], database);
  if (saved === undefined) return 'unclear';
  const [row] = await taken.query(HAS_HEARD, [saved['xid'], firstXid]);
  return row?.['heard'] === true ? 'replicated' : 'left behind';
}

const STORY = `select c.key, c.url, c.queue_name, c.flow_control_key, c.created_at_ms, c.not_before_ms,
    (select array_agg(l.state order by l.seq) from logs l where l.message_key = c.key)::text as states,
    (select to_jsonb(m) from messages m where m.key = c.key)::text as unfinished,
    (select d.failed_at_ms from dead d where d.key = c.key) as dead_at_ms
  from contents c where c.id = $1`;

/** Lines that explain the loss to a person. */
export async function storyOf(messageId: string, ledger: WalLedger, databases: Databases): Promise<string> {
  const { left, taken, database, position } = databases;
  const { above, atMost } = ledger.boundsOf(messageId);
  const tag = ledger.message(messageId)?.tag;
  const arrivals = ledger.arrivals().filter((arrival) => arrival.tag === tag);
  return [
    `${messageId} (${tag})`,
    `  committed after ${above}, at ${atMost} or before; the standby has the log up to ${position}`,
    `  arrivals of the tag: ${JSON.stringify(arrivals)}`,
    `  where it was left: ${await lookUp(left, database, messageId)}`,
    `  where it should be: ${await lookUp(taken, database, messageId)}`,
  ].join('\n');
}

async function lookUp(cluster: Cluster, database: string, messageId: string): Promise<string> {
  const [row] = await cluster.query(STORY, [messageId], database);
  if (row === undefined) return 'unknown';
  const states = /^\{(.*)\}$/.exec(String(row['states']))?.[1]?.split(',') ?? [];
  return JSON.stringify({ ...row, states: states.map((code) => anyLogStateOf(Number(code))) });
}
