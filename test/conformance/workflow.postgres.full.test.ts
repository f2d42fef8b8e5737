/** The statements of workflow.test.ts that workflow.postgres.test.ts does not try, on PostgreSQL. */

import { tryStatements } from './support/statement.ts';
import { LANES_AND_LISTS, WORKFLOW } from './workflow/index.ts';

tryStatements(
  WORKFLOW.filter((section) => !LANES_AND_LISTS.includes(section)),
  { database: 'postgres' },
);
