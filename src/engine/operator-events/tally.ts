/** Adds new facts to a count, and decides when the count is published. Pure. */
import type { Millis } from '../model.ts';
import type { OperatorEventKind } from './kinds.ts';
import type { OperatorEventRules, OperatorFact, Tally } from './model.ts';

/**
 * The kinds that each worker detects by itself. During a quiet time, further detections of the published example are
 * ignored.
 */
const DETECTED_BY_EACH: readonly OperatorEventKind[] = ['origin_held', 'store_filling'];

/**
 * `facts`: at least one fact, all of one kind and project. The first facts are published immediately; facts within the
 * quiet time are counted, and published at its end. A count that stays below the threshold for a quiet time is discarded.
 */
export function addFacts(
  before: Tally | undefined,
  facts: readonly [OperatorFact, ...OperatorFact[]],
  { thresholds, quietMs }: OperatorEventRules,
  nowMs: Millis,
): Tally {
  const { kind, projectId } = facts[0];
  const threshold = thresholds[kind] ?? Infinity;
  const quietUntilMs = before?.quietUntilMs ?? 0;
  const published = nowMs < quietUntilMs && DETECTED_BY_EACH.includes(kind) ? before?.publishedExample : undefined;
  const newFacts = facts.filter(({ example }) => example !== published).toSorted((a, b) => a.atMs - b.atMs);
  const [first = facts[0]] = newFacts;
  const isForgotten = !before || (before.count < threshold && first.atMs - before.firstAtMs > quietMs);
  const previous = isForgotten || before.count === 0 ? undefined : before;
  const isFirst = !previous || (newFacts.length > 0 && first.atMs < previous.firstAtMs);
  const tally: Tally = {
    kind,
    projectId,
    count: (previous?.count ?? 0) + newFacts.length,
    firstAtMs: isFirst ? first.atMs : previous.firstAtMs,
    lastAtMs: Math.max(previous?.lastAtMs ?? first.atMs, ...newFacts.map(({ atMs }) => atMs)),
    example: isFirst ? first.example : previous.example,
    quietUntilMs,
  };
  if (before?.publishedExample !== undefined) tally.publishedExample = before.publishedExample;
  if (tally.count >= threshold) tally.dueAtMs = Math.max(quietUntilMs, nowMs);
  return tally;
}
