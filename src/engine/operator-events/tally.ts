/** What do new facts make of what is counted already, and when is it to be told? Pure. */
import type { Millis } from '../model.ts';
import type { OperatorEventKind } from './kinds.ts';
import type { OperatorEventRules, OperatorFact, Tally } from './model.ts';

/** Each worker notices them for itself: told once in a quiet time, whoever notices them again. */
const NOTICED_BY_EACH: readonly OperatorEventKind[] = ['origin_held', 'store_filling'];

/**
 * `facts`: in their order, of one kind and project, at least one. The first ones are told at once; then those of the
 * quiet time are counted, and told at its end. Fewer than the threshold within a quiet time are forgotten.
 */
export function tallied(
  before: Tally | undefined,
  facts: readonly [OperatorFact, ...OperatorFact[]],
  { thresholds, quietMs }: OperatorEventRules,
  nowMs: Millis,
): Tally {
  const [{ kind, projectId, atMs, example }] = facts;
  const threshold = thresholds[kind] ?? Infinity;
  const quietUntilMs = before?.quietUntilMs ?? 0;
  const told = nowMs < quietUntilMs && NOTICED_BY_EACH.includes(kind) ? before?.toldExample : undefined;
  const fresh = facts.filter((fact) => fact.example !== told);
  const isForgotten = !before || before.count === 0 || (before.count < threshold && atMs - before.firstAtMs > quietMs);
  const since = isForgotten
    ? { count: 0, firstAtMs: fresh[0]?.atMs ?? atMs, example: fresh[0]?.example ?? example }
    : before;
  const tally: Tally = {
    kind,
    projectId,
    count: since.count + fresh.length,
    firstAtMs: Math.min(since.firstAtMs, ...fresh.map((fact) => fact.atMs)),
    lastAtMs: Math.max(isForgotten ? 0 : before.lastAtMs, ...fresh.map((fact) => fact.atMs)),
    example: since.example,
    quietUntilMs,
  };
  if (before?.toldExample !== undefined) tally.toldExample = before.toldExample;
  if (tally.count >= threshold) tally.dueAtMs = Math.max(quietUntilMs, nowMs);
  return tally;
}
