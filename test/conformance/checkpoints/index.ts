/** Results of steps that are kept within one call (`docs/contract/checkpoints.md`). */
import type { Section } from '../support/statement.ts';
import { codeChanges } from './code-changes.ts';
import { continuation } from './continuation.ts';
import { dailyLimit } from './daily-limit.ts';
import { ends } from './ends.ts';
import { idleCalls } from './idle-calls.ts';
import { lastSteps } from './last-steps.ts';
import { limits } from './limits.ts';
import { refusals } from './refusals.ts';
import { suspensions } from './suspensions.ts';

export const CHECKPOINTS: readonly Section[] = [
  continuation,
  suspensions,
  limits,
  refusals,
  ends,
  codeChanges,
  dailyLimit,
  idleCalls,
  lastSteps,
];
