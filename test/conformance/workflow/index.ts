/** The checklist of workflows (contract W 26). */
import type { Section } from '../support/statement.ts';
import { calls, exactSleeps } from './calls.ts';
import { configuration } from './configuration.ts';
import { deadLetters } from './dead-letters.ts';
import { detection } from './detection.ts';
import { dialects } from './dialects.ts';
import { ending } from './ending.ts';
import { failures } from './failures.ts';
import { invocations } from './invocations.ts';
import { journal } from './journal.ts';
import { logs } from './logs.ts';
import { runIds } from './run-ids.ts';
import { starting } from './starting.ts';
import { stepSettings } from './step-settings.ts';
import { waits } from './waits.ts';

export const WORKFLOW: readonly Section[] = [
  starting,
  detection,
  journal,
  configuration,
  failures,
  ending,
  calls,
  waits,
  invocations,
  logs,
  deadLetters,
  dialects,
  stepSettings,
  exactSleeps,
  runIds,
];
