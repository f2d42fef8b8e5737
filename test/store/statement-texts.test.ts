/** The statements that each database receives. postgres-plans.test.ts shows that they leave the planner no other plan. */
import { expect, it } from 'vitest';
import { toPostgres } from '../../src/store/sql/postgres.ts';
import { toSqlite } from '../../src/store/sql/sqlite.ts';

const TEXTS: readonly [title: string, text: string, postgres: string, sqlite: string][] = [
  [
    'looks a table up, with the columns that are asked of it',
    'select m.key, c.id from messages m lookup contents c on (c.key = m.key) where m.wait_state = ? order by m.key for update of m',
    'select m.key, c.id from messages m cross join lateral (select c.id, c.key from contents c where c.key = m.key offset 0) c where m.wait_state = $1 order by m.key for update of m',
    'select m.key, c.id from messages m join contents c on (c.key = m.key) where m.wait_state = ? order by m.key',
  ],
  [
    'looks the next one up from that',
    'select c.id from runs r lookup journal j on (j.run_key = r.key and j.kind in (1, 4)) lookup contents c on (c.key = j.key)',
    'select c.id from runs r cross join lateral (select j.run_key, j.kind, j.key from journal j where j.run_key = r.key and j.kind in (1, 4) offset 0) j cross join lateral (select c.id, c.key from contents c where c.key = j.key offset 0) c',
    'select c.id from runs r join journal j on (j.run_key = r.key and j.kind in (1, 4)) join contents c on (c.key = j.key)',
  ],
  [
    'keeps the rows for which nothing is found',
    'select r.key from runs r left lookup contents c on (c.key = r.key) limit ?',
    'select r.key from runs r left join lateral (select c.key from contents c where c.key = r.key offset 0) c on true limit $1',
    'select r.key from runs r left join contents c on (c.key = r.key) limit +?',
  ],
  [
    'makes the list of keys before it looks for them',
    'select l.seq from logs l where l.run_key in list (select r.key from runs r where (r.id = ? or r.url = ?)) and l.state = ?',
    'select l.seq from logs l where l.run_key = any(array(select r.key from runs r where (r.id = $1 or r.url = $2))) and l.state = $3',
    'select l.seq from logs l where l.run_key in (select r.key from runs r where (r.id = ? or r.url = ?)) and l.state = ?',
  ],
  [
    'asks for each row whether another one exists',
    `delete from contents where not exists lookup (select 1 from dead d where d.key = contents.key) and exists lookup (select 1
       from runs r where r.key in list (select j.run_key from journal j where j.key = contents.key))`,
    `delete from contents where not exists (select 1 from dead d where d.key = contents.key offset 0) and exists (select 1
       from runs r where r.key = any(array(select j.run_key from journal j where j.key = contents.key)) offset 0)`,
    `delete from contents where not exists (select 1 from dead d where d.key = contents.key) and exists (select 1
       from runs r where r.key in (select j.run_key from journal j where j.key = contents.key))`,
  ],
  [
    'takes a list of values as one parameter',
    'select key from messages where key in (??) and key not in (??) and wait_state in (1, 4)',
    'select key from messages where key = any($1) and key <> all($2) and wait_state in (1, 4)',
    'select key from messages where key in (select value from json_each(?)) and key not in (select value from json_each(?)) and wait_state in (1, 4)',
  ],
  [
    'goes through a list of numbers as through rows',
    'select p.value as id from list (??) p where exists lookup (select 1 from runs r where r.project_id = p.value) limit ?',
    'select p.value as id from unnest($1::bigint[]) p(value) where exists (select 1 from runs r where r.project_id = p.value offset 0) limit $2',
    'select p.value as id from json_each(?) p where exists (select 1 from runs r where r.project_id = p.value) limit +?',
  ],
  [
    'leaves to the planner what no word tells it',
    'select c.key from contents c join dead d on d.key = c.key where exists (select 1 from runs) and c.key in (select 1)',
    'select c.key from contents c join dead d on d.key = c.key where exists (select 1 from runs) and c.key in (select 1)',
    'select c.key from contents c join dead d on d.key = c.key where exists (select 1 from runs) and c.key in (select 1)',
  ],
];

it.each(TEXTS)('%s', (_, text, postgres, sqlite) => {
  expect({ postgres: toPostgres(text), sqlite: toSqlite(text) }).toEqual({ postgres, sqlite });
});
