/** URL groups and their endpoints. Programs that do not know them go on with everything else. */
import type { SqlDialect } from '../driver.ts';
import type { Migration } from './migration.ts';

export const urlGroups: Migration = {
  number: 2,
  name: 'url groups',
  breaking: false,
  statements: ({ bigint, clustered }: SqlDialect) => [
    `create table url_groups (
  project_id ${bigint} not null,
  name text not null,
  created_at_ms ${bigint} not null,
  updated_at_ms ${bigint} not null,
  headers text,
  primary key (project_id, name)
)${clustered}`,
    `create table url_group_endpoints (
  project_id ${bigint} not null,
  group_name text not null,
  position ${bigint} not null,
  url text not null,
  name text,
  primary key (project_id, group_name, position)
)${clustered}`,
  ],
};
