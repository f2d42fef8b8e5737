/** The statements of the interface document, which numbers none itself. */
import type { Section } from '../support/statement.ts';
import { access } from './access.ts';
import { deadLetter } from './dead-letter.ts';
import { flowControlListing } from './flow-control-listing.ts';
import { paging } from './paging.ts';
import { queueResume } from './queue-resume.ts';
import { traces } from './traces.ts';
import { workflows } from './workflows.ts';

export const INTERFACE: readonly Section[] = [
  queueResume,
  deadLetter,
  flowControlListing,
  paging,
  access,
  workflows,
  traces,
];
