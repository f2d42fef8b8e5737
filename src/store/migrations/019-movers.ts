/**
 * Which command moves a project, and when it last said so: another one takes over only once it is silent.
 * In the directory the row stands for the move; in the other cells it says only whose it is (move/project/mover.ts).
 *
 * A command that does not know this step goes on with a move beside others.
 */
import type { SqlDialect } from '../driver.ts';
import type { Migration } from './migration.ts';

export const movers: Migration = {
  number: 19,
  name: 'movers',
  breaking: false,
  statements: ({ bigint }: SqlDialect) => [
    `alter table project_moves add column mover text not null default ''`,
    `alter table project_moves add column seen_at_ms ${bigint} not null default 0`,
  ],
};
