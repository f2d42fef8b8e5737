/**
 * Each project has its own line at an origin, so that many messages of one project delay no other project (P9).
 *
 * Programs that do not know this step find the same messages, only more slowly.
 */
import type { Migration } from './migration.ts';

export const linesOfProjects: Migration = {
  number: 10,
  name: 'lines of projects',
  breaking: false,
  statements: () => [
    'create index messages_lines on messages (project_id, origin, due_at_ms, key) where claim_token is null and line = 1',
    'drop index messages_parked',
  ],
};
