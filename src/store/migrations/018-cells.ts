/**
 * Cells: where a project lives, and what a cell knows of the projects that have left it, or are on their way.
 *
 * Programs that do not know this step know one cell, and no other program may use a store that is one of several.
 */
import type { SqlDialect } from '../driver.ts';
import type { Migration } from './migration.ts';

export const cells: Migration = {
  number: 18,
  name: 'cells',
  breaking: false,
  statements: ({ bigint, smallint }: SqlDialect) => [
    // In the directory: every cell but the first, which is in the same place.
    `create table cells (
  id ${bigint} primary key,
  name text not null unique,
  url text not null,
  added_at_ms ${bigint} not null,
  draining ${smallint} not null
)`,
    // In the directory: the cell in which the project lives.
    `alter table projects add column cell ${bigint} not null default 1`,
    // In each cell: whether the project may be written to there (operations/fence.ts).
    `alter table projects add column presence ${smallint} not null default 0`,
    'create index projects_moving on projects (id) where presence in (1, 2, 3)',
    // In the directory: the projects that are being moved, and how far each has come.
    `create table project_moves (
  project_id ${bigint} primary key,
  from_cell ${bigint} not null,
  to_cell ${bigint} not null,
  phase text not null,
  begun_at_ms ${bigint} not null
)`,
    // The end of the range that a cell takes its numbers from; null: it is the only one.
    `alter table numbers add column until ${bigint}`,
  ],
};
