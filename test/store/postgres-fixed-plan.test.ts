/** That the planner has no choice left is shown in postgres-plans.test.ts; here is what it is sent. */
import { expect, it } from 'vitest';
import { fixPlan } from '../../src/store/drivers/postgres/fixed-plan.ts';

const TEXTS: readonly [title: string, text: string, fixed: string][] = [
  [
    'looks each joined table up, with the columns that are asked of it',
    'select m.key, c.id from messages m join contents c on c.key = m.key where m.key in (??) order by m.key for update of m',
    `select m.key, c.id from messages m cross join lateral (select c.id, c.key from contents c where c.key = m.key offset 0) c where m.key in (??) order by m.key for update of m`,
  ],
  [
    'goes from one table to the next in the order in which they are written',
    'select c.id from runs r join journal j on j.run_key = r.key and j.kind in (1, 4) join contents c on c.key = j.key',
    `select c.id from runs r cross join lateral (select j.run_key, j.kind, j.key from journal j where j.run_key = r.key and j.kind in (1, 4) offset 0) j cross join lateral (select c.id, c.key from contents c where c.key = j.key offset 0) c`,
  ],
  [
    'keeps the rows that have nothing to be joined with',
    'select r.key from runs r left join contents c on c.key = r.key limit ?',
    'select r.key from runs r left join lateral (select c.key from contents c where c.key = r.key offset 0) c on true limit ?',
  ],
  [
    'makes the list of keys before it looks for them',
    'select l.seq from logs l where l.run_key in (select r.key from runs r where (r.id = ? or r.url = ?)) and l.state = ?',
    'select l.seq from logs l where l.run_key = any(array(select r.key from runs r where (r.id = ? or r.url = ?))) and l.state = ?',
  ],
  [
    'asks for each row whether another one exists',
    `delete from contents where not exists (select 1 from dead d where d.key = contents.key) and exists (select 1
       from runs r where r.key in (select j.run_key from journal j where j.key = contents.key))`,
    `delete from contents where not exists (select 1 from dead d where d.key = contents.key offset 0) and exists (select 1
       from runs r where r.key = any(array(select j.run_key from journal j where j.key = contents.key)) offset 0)`,
  ],
  [
    'leaves lists of values, and what is of one table, as they are',
    'select key from messages where key in (??) and key not in (??) and line in (1, 4)',
    'select key from messages where key in (??) and key not in (??) and line in (1, 4)',
  ],
];

it.each(TEXTS)('%s', (_, text, fixed) => {
  expect(fixPlan(text)).toBe(fixed);
});
