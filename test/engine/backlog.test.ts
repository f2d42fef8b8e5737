/** The projects of which this worker has more messages than it can deliver, by the results of its claims. */
import { beforeEach, expect, test } from 'vitest';
import { LARGE_CLAIM, LaggingProjects } from '../../src/engine/admission/lagging-projects.ts';
import { type BacklogKey, backlogKey } from '../../src/engine/lanes/backlog-key.ts';
import type { Claimed } from '../../src/engine/model.ts';
import { claimed, message } from './fixtures.ts';

const PROJECT = 1;
const OTHER = 2;
const LINE = backlogKey(PROJECT, 'https://a.example');

let backlog: LaggingProjects;
let caughtUp: number[];
let elapsedMs: number;
beforeEach(() => {
  elapsedMs = 0;
  caughtUp = [];
  backlog = new LaggingProjects();
  backlog.listen((projectId) => caughtUp.push(projectId));
});

function noteClaim(backlogs: BacklogKey[], of: Claimed[]): void {
  backlog.noteClaim(backlogs, of, elapsedMs);
}

function has(projectId: number): boolean {
  return backlog.has(projectId, elapsedMs);
}

function many(count: number, projectId = PROJECT): Claimed[] {
  return Array.from({ length: count }, () => claimed({ message: message({ projectId }) }));
}

test('are those of which a claim returns many', () => {
  noteClaim([], [...many(LARGE_CLAIM), ...many(LARGE_CLAIM - 1, OTHER)]);
  expect([has(PROJECT), has(OTHER), caughtUp]).toEqual([true, false, []]);
});

test('until a claim returns few of them, which is reported once', () => {
  noteClaim([], many(LARGE_CLAIM));
  noteClaim([], many(1));
  noteClaim([], many(1));
  expect([has(PROJECT), caughtUp]).toEqual([false, [PROJECT]]);
});

test('until a claim that requested them returns none', () => {
  noteClaim([], many(LARGE_CLAIM));
  noteClaim([LINE], []);
  expect(has(PROJECT)).toBe(false);
});

test('also while claims return messages of others', () => {
  noteClaim([LINE], many(LARGE_CLAIM));
  noteClaim([], many(LARGE_CLAIM, OTHER));
  expect([has(PROJECT), caughtUp]).toEqual([true, []]);
});

test('for a second: no claim names a project whose last messages are delivered, while others have a backlog', () => {
  noteClaim([LINE], many(LARGE_CLAIM));
  elapsedMs += 999;
  noteClaim([], many(LARGE_CLAIM, OTHER));
  expect(has(PROJECT)).toBe(true);
  elapsedMs += 1;
  expect([has(PROJECT), has(OTHER)]).toEqual([false, true]);
});

test('none, when nothing is claimed any more', () => {
  noteClaim([], [...many(LARGE_CLAIM), ...many(LARGE_CLAIM, OTHER)]);
  backlog.noteIdle();
  expect([has(PROJECT), has(OTHER), caughtUp]).toEqual([false, false, [PROJECT, OTHER]]);
});
