/**
 * Projects take turns at what is due: each has its due messages in order, so that one project's backlog is not looked
 * through to find another's.
 *
 * Programs that do not know this step claim in the order of all due times.
 */
import type { Migration } from './migration.ts';

export const turnsOfProjects: Migration = {
  number: 16,
  name: 'turns of projects',
  breaking: false,
  statements: () => [
    'create index messages_due_of_project on messages (project_id, due_at_ms, key) where claim_token is null and line = 0',
  ],
};
