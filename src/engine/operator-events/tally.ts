/** Adds new facts to a count, and decides when the count is published. Pure. */
import type { Millis } from '../model.ts';
import type { OperatorEventKind } from './kinds.ts';
import type { OperatorEventRules, OperatorFact, Tally } from './model.ts';

/** Each worker detects these by itself. In a quiet time they are published once, even if another worker detects them too. */
const NOTICED_BY_EACH: readonly OperatorEventKind[] = ['origin_held', 'store_filling'];

/**
 * `facts`: of one kind and project, at least one. The first facts are published immediately; those within the quiet time are
 * counted, and published at its end. A count that stays below the threshold for a quiet time is discarded.
 */
export function tallied(
  before: Tally | undefined,
  facts: readonly [OperatorFact, ...OperatorFact[]],
  { thresholds, quietMs }: OperatorEventRules,
  nowMs: Millis,
): Tally {
  const { kind, projectId } = facts[0];
  const threshold = thresholds[kind] ?? Infinity;
  const quietUntilMs = before?.quietUntilMs ?? 0;
  const told = nowMs < quietUntilMs && NOTICED_BY_EACH.includes(kind) ? before?.toldExample : undefined;
  const fresh = facts.filter(({ example }) => example !== told).toSorted((a, b) => a.atMs - b.atMs);
  const [first = facts[0]] = fresh;
  const isForgotten = !before || (before.count < threshold && first.atMs - before.firstAtMs > quietMs);
  const kept = isForgotten || before.count === 0 ? undefined : before;
  const isFirst = !kept || (fresh.length > 0 && first.atMs < kept.firstAtMs);
  const tally: Tally = {
    kind,
    projectId,
    count: (kept?.count ?? 0) + fresh.length,
    firstAtMs: isFirst ? first.atMs : kept.firstAtMs,
    lastAtMs: Math.max(kept?.lastAtMs ?? first.atMs, ...fresh.map(({ atMs }) => atMs)),
    example: isFirst ? first.example : kept.example,
    quietUntilMs,
  };
  if (before?.toldExample !== undefined) tally.toldExample = before.toldExample;
  if (tally.count >= threshold) tally.dueAtMs = Math.max(quietUntilMs, nowMs);
  return tally;
}
