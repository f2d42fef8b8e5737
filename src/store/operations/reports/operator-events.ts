/**
 * Saves facts for operator events, such as a dead message, counts them in tallies, and saves the message that reports
 * a tally to the operator.
 */
import type { Saved } from '../../../engine/messages/accepted.ts';
import type { Millis, NewMessage, ProjectId } from '../../../engine/model.ts';
import type { OperatorEventKind } from '../../../engine/operator-events/kinds.ts';
import type { OperatorEventRules, OperatorFact, Tally } from '../../../engine/operator-events/model.ts';
import { addFacts } from '../../../engine/operator-events/tally.ts';
import type { SqlValue, Transaction } from '../../driver.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { insertMessages } from '../messages/accept.ts';
import { encodeNewMessage, type StoredNewMessage, weightOf } from '../messages/rows.ts';
import { write } from '../operation.ts';

const FACT_COLUMNS = ['key', 'kind', 'project_id', 'at_ms', 'example'];
const TALLY_COLUMNS = [
  'kind',
  'project_id',
  'facts',
  'first_at_ms',
  'last_at_ms',
  'example',
  'quiet_until_ms',
  'reported_example',
  'due_at_ms',
] as const;

const INSERT_TALLY = `insert into operator_events (${TALLY_COLUMNS.join(', ')}) values (${TALLY_COLUMNS.map(() => '?').join(', ')})`;
const SAVE_TALLY = `${INSERT_TALLY}
  on conflict (kind, project_id) do update set ${TALLY_COLUMNS.slice(2)
    .map((name) => `${name} = excluded.${name}`)
    .join(', ')}`;

type TallyRow = Record<(typeof TALLY_COLUMNS)[number], SqlValue>;

/** Saves facts in the transaction that causes them. */
export function insertFacts(tx: Transaction, facts: readonly OperatorFact[]): Promise<void> {
  const rows = facts.map(({ key, kind, projectId, atMs, example }) => [key, kind, projectId, atMs, example]);
  return tx.insertMany('operator_facts', FACT_COLUMNS, rows);
}

/** Saves facts that no other command causes. */
export const noteFacts = write(
  { class: () => 'accept', weight: ({ facts }) => ({ rows: facts.length }) },
  ({ tx }: WriteContext, { facts }: { facts: readonly OperatorFact[] }): Promise<void> => insertFacts(tx, facts),
);

export interface GatherArgs extends OperatorEventRules {
  /** The maximum number of facts that are counted in one transaction. */
  factsMax: number;
  nowMs: Millis;
}

/**
 * Counts facts in their tallies. The rows of the facts and tallies are locked, so that two concurrent workers count each
 * fact once. Returns whether there may be more facts, which tallies are due to be reported, and when the next tally is
 * due.
 */
export const gatherFacts = write(
  { class: () => 'accept', weight: ({ factsMax }) => ({ rows: factsMax }) },
  async (
    { tx }: WriteContext,
    { factsMax, nowMs, thresholds, quietMs }: GatherArgs,
  ): Promise<{ hasMore: boolean; due: Tally[]; nextAtMs: Millis | undefined }> => {
    const rows = await tx.query<{ key: number; kind: string; project_id: number; at_ms: number; example: string }>(
      'select key, kind, project_id, at_ms, example from operator_facts order by key limit ? for update',
      [factsMax],
    );
    const facts = rows.map(({ kind, project_id: projectId, at_ms: atMs, ...fact }) => ({
      ...fact,
      ...{ kind: kind as OperatorEventKind, projectId, atMs },
    }));
    const groups = Map.groupBy(facts, ({ kind, projectId }) => `${kind} ${projectId}`);
    for (const [, [first, ...others]] of [...groups].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      if (first === undefined) continue;
      const before = await lockTally(tx, first);
      await tx.send(SAVE_TALLY, encode(addFacts(before, [first, ...others], { thresholds, quietMs }, nowMs)));
    }
    if (facts.length > 0) await tx.send('delete from operator_facts where key in (??)', [facts.map(({ key }) => key)]);
    const due = await tx.query<TallyRow>(
      `select ${TALLY_COLUMNS.join(', ')} from operator_events where due_at_ms is not null and due_at_ms <= ?
       order by due_at_ms limit ?`,
      [nowMs, factsMax],
    );
    const [next] = await tx.query<{ due_at_ms: number }>(
      'select due_at_ms from operator_events where due_at_ms is not null order by due_at_ms limit 1',
    );
    return { hasMore: facts.length === factsMax, due: due.map(decode), nextAtMs: next?.due_at_ms };
  },
);

export interface ReportTallyArgs {
  projectId: ProjectId;
  tally: Tally;
  message: StoredNewMessage;
  quietUntilMs: Millis;
  nowMs: Millis;
}

/**
 * Saves the message that reports `tally` and resets the tally, in one transaction. If another worker has reported the
 * tally, or more facts were counted since, nothing is done and the result is `stale`. `projectId` is the project of the
 * operator.
 */
export const reportTally = write(
  { class: () => 'accept', weight: ({ message }) => weightOf([message]) },
  async (context: WriteContext, { tally, message, quietUntilMs, nowMs }: ReportTallyArgs): Promise<Saved | 'stale'> => {
    if (!(await resetTally(context.tx, tally, quietUntilMs))) return 'stale';
    const [saved] = await insertMessages(context, [message], nowMs);
    if (saved === undefined) throw new Error('the message that reports an operator event was not saved');
    return saved;
  },
  ({ message, ...args }: Omit<ReportTallyArgs, 'message'> & { message: NewMessage }) => ({
    ...args,
    message: encodeNewMessage(message),
  }),
);

/** Resets the tally as `reportTally` does, for a message that reports the tally but is saved in another cell. */
export const noteReported = write(
  { class: () => 'accept' },
  async ({ tx }: WriteContext, { tally, quietUntilMs }: { tally: Tally; quietUntilMs: Millis }): Promise<void> => {
    await resetTally(tx, tally, quietUntilMs);
  },
);

/** Resets the tally. Returns false if the tally has changed since it was read. */
async function resetTally(tx: Transaction, tally: Tally, quietUntilMs: Millis): Promise<boolean> {
  const reported = await tx.run(
    `update operator_events set facts = 0, due_at_ms = null, quiet_until_ms = ?, reported_example = example
     where kind = ? and project_id = ? and facts = ? and quiet_until_ms = ?`,
    [quietUntilMs, tally.kind, tally.projectId, tally.count, tally.quietUntilMs],
  );
  return reported > 0;
}

/** Locks the tally, and creates it if it is missing. Returns the stored tally, or undefined if the tally is new. */
async function lockTally(tx: Transaction, of: Pick<Tally, 'kind' | 'projectId'>): Promise<Tally | undefined> {
  const empty = { ...of, count: 0, firstAtMs: 0, lastAtMs: 0, example: '', quietUntilMs: 0 };
  const made = await tx.run(`${INSERT_TALLY} on conflict (kind, project_id) do nothing`, encode(empty));
  if (made > 0) return undefined;
  const [row] = await tx.query<TallyRow>(
    `select ${TALLY_COLUMNS.join(', ')} from operator_events where kind = ? and project_id = ? for update`,
    [of.kind, of.projectId],
  );
  return row && decode(row);
}

function encode(tally: Tally): SqlValue[] {
  const { kind, projectId, count, firstAtMs, lastAtMs, example, quietUntilMs, publishedExample, dueAtMs } = tally;
  const optional = [publishedExample ?? null, dueAtMs ?? null];
  return [kind, projectId, count, firstAtMs, lastAtMs, example, quietUntilMs, ...optional];
}

function decode(row: TallyRow): Tally {
  return {
    kind: row.kind as OperatorEventKind,
    projectId: row.project_id as number,
    count: row.facts as number,
    firstAtMs: row.first_at_ms as number,
    lastAtMs: row.last_at_ms as number,
    example: row.example as string,
    quietUntilMs: row.quiet_until_ms as number,
    ...(row.reported_example !== null && { publishedExample: row.reported_example as string }),
    ...(row.due_at_ms !== null && { dueAtMs: row.due_at_ms as number }),
  };
}
