/** Results of steps that are kept within one call (`docs/contract/checkpoints.md`). */
import type { Section } from '../support/statement.ts';
import { codeChanges } from './code-changes.ts';
import { ends } from './ends.ts';
import { goingOn } from './going-on.ts';
import { lastSteps } from './last-steps.ts';
import { limits } from './limits.ts';
import { lingering } from './lingering.ts';
import { messagesPerDay } from './messages-per-day.ts';
import { refusals } from './refusals.ts';
import { suspensions } from './suspensions.ts';

export const CHECKPOINTS: readonly Section[] = [
  goingOn,
  suspensions,
  limits,
  refusals,
  ends,
  codeChanges,
  messagesPerDay,
  lingering,
  lastSteps,
];
