/** Of which projects this worker has more to deliver than it comes to, as its claims tell. */
import { beforeEach, expect, test } from 'vitest';
import { lineOf } from '../../src/engine/lanes/origin-line.ts';
import { Backlog, CLAIM_MANY } from '../../src/engine/messages/backlog.ts';
import type { Claimed } from '../../src/engine/model.ts';
import { claimed, message } from './fixtures.ts';

const PROJECT = 1;
const OTHER = 2;
const LINE = lineOf(PROJECT, 'https://a.example');

let backlog: Backlog;
let caughtUp: number[];
beforeEach(() => {
  caughtUp = [];
  backlog = new Backlog();
  backlog.listen((projectId) => caughtUp.push(projectId));
});

function many(count: number, projectId = PROJECT): Claimed[] {
  return Array.from({ length: count }, () => claimed({ message: message({ projectId }) }));
}

test('those of which a claim brings many', () => {
  backlog.noteClaim([], [...many(CLAIM_MANY), ...many(CLAIM_MANY - 1, OTHER)]);
  expect([backlog.has(PROJECT), backlog.has(OTHER), caughtUp]).toEqual([true, false, []]);
});

test('until a claim brings few of them, which is told once', () => {
  backlog.noteClaim([], many(CLAIM_MANY));
  backlog.noteClaim([], many(1));
  backlog.noteClaim([], many(1));
  expect([backlog.has(PROJECT), caughtUp]).toEqual([false, [PROJECT]]);
});

test('until a claim that asked for them brings none', () => {
  backlog.noteClaim([], many(CLAIM_MANY));
  backlog.noteClaim([LINE], []);
  expect(backlog.has(PROJECT)).toBe(false);
});

test('also while claims bring what is of others', () => {
  backlog.noteClaim([LINE], many(CLAIM_MANY));
  backlog.noteClaim([], many(CLAIM_MANY, OTHER));
  expect([backlog.has(PROJECT), caughtUp]).toEqual([true, []]);
});

test('none, when nothing is claimed any more', () => {
  backlog.noteClaim([], [...many(CLAIM_MANY), ...many(CLAIM_MANY, OTHER)]);
  backlog.noteIdle();
  expect([backlog.has(PROJECT), backlog.has(OTHER), caughtUp]).toEqual([false, false, [PROJECT, OTHER]]);
});
