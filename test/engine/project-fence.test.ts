/** How long a worker continues attempts of a project that has left the cell in which they started. */
import { beforeEach, expect, test } from 'vitest';
import type { ProjectId } from '../../src/engine/model.ts';
import { ProjectFence } from '../../src/engine/workers/project-fence.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

const LIMIT_MS = 12_000;
const PROJECT = 1;
/** The two cells. */
const [FORMER, NEW] = [{ name: 'former' }, { name: 'new' }];

let clock: SimulatedClock;
let fence: ProjectFence;
let underWay: Map<ProjectId, number>;
let interrupted: ProjectId[];
let logged: string[];
let asksSoon: number;
let leave: () => void;

beforeEach(() => {
  clock = new SimulatedClock();
  logged = [];
  const note = (event: string, fields?: object) => void logged.push(`${event} ${JSON.stringify(fields)}`);
  const log = { debug: note, info: note, warn: note, error: note };
  fence = new ProjectFence(clock, log, LIMIT_MS, (projectId) => `project ${projectId}`);
  underWay = new Map();
  interrupted = [];
  asksSoon = 0;
  leave = fence.join({
    countOf: (projectId) => underWay.get(projectId) ?? 0,
    interrupt: (projectId) => interrupted.push(projectId),
    sendHeartbeatSoon: () => {
      asksSoon += 1;
    },
  });
});

/** An attempt in the former cell whose claim was requested now. */
function begin(projectId: ProjectId = PROJECT): boolean {
  underWay.set(projectId, 1);
  return fence.mayStart(projectId, clock.elapsedMs, FORMER);
}

/** A heartbeat with an immediate response. */
function beat(cell: object, here: ProjectId[], { wasKnown = true, startedAtMs = clock.elapsedMs } = {}): void {
  fence.noteHeartbeat({ requested: fence.projectsToRequest(cell), here, startedAtMs: startedAtMs, wasKnown }, cell);
}

test('they continue while heartbeats find the project', async () => {
  expect(begin()).toBe(true);
  for (let beats = 0; beats < 10; beats += 1) {
    await clock.advanceBy(LIMIT_MS / 2);
    beat(FORMER, [PROJECT]);
  }
  expect(interrupted).toEqual([]);
});

test('they are interrupted when no heartbeat has found it for the time of a fence, and those of others continue', async () => {
  begin();
  begin(2);
  await clock.advanceBy(5_000);
  beat(FORMER, [PROJECT, 2]);
  for (let beats = 0; beats < 2; beats += 1) {
    await clock.advanceBy(LIMIT_MS / 2);
    beat(FORMER, [2]);
    expect(interrupted).toEqual([]);
  }
  await clock.advanceBy(1);
  expect(interrupted).toEqual([PROJECT]);
  await clock.advanceBy(LIMIT_MS - 2);
  expect(interrupted).toEqual([PROJECT]);
});

test('they continue while heartbeats in another cell find it, which look for it once it has left', async () => {
  begin();
  expect(fence.projectsToRequest(NEW)).toEqual([]);
  beat(FORMER, []);
  for (let beats = 0; beats < 4; beats += 1) {
    await clock.advanceBy(LIMIT_MS / 2);
    beat(NEW, [PROJECT]);
    beat(FORMER, []);
  }
  expect(fence.projectsToRequest(FORMER)).toEqual([]);
  expect(interrupted).toEqual([]);
  await clock.advanceBy(LIMIT_MS + 1);
  expect(interrupted).toEqual([PROJECT]);
});

test('all cells are polled at once when it has left its cell', () => {
  begin();
  beat(FORMER, [PROJECT]);
  fence.noteLeft([2]);
  expect(asksSoon).toBe(0);
  beat(FORMER, []);
  expect(asksSoon).toBe(1);
  beat(NEW, [PROJECT]);
  fence.noteLeft([PROJECT]);
  expect(asksSoon).toBe(2);
  expect(fence.projectsToRequest(FORMER)).toEqual([PROJECT]);
});

test('the log names the project, and the number of its interrupted attempts', async () => {
  begin();
  underWay.set(PROJECT, 3);
  await clock.advanceBy(LIMIT_MS + 1);
  expect(logged).toEqual(['project_cut_off {"project":"project 1","count":3}']);
});

test('they are interrupted at once when this worker has expired in the new cell', () => {
  begin();
  beat(FORMER, []);
  beat(NEW, [PROJECT], { wasKnown: false });
  expect(interrupted).toEqual([PROJECT]);
});

test('a slow response that is older than the known state changes nothing', async () => {
  begin();
  const requested = fence.projectsToRequest(FORMER);
  const startedAtMs = clock.elapsedMs;
  await clock.advanceBy(3_000);
  beat(FORMER, []);
  beat(NEW, [PROJECT]);
  fence.noteHeartbeat({ requested: requested, here: [PROJECT], startedAtMs: startedAtMs, wasKnown: true }, FORMER);
  expect(fence.projectsToRequest(FORMER)).toEqual([]);
  expect(fence.projectsToRequest(NEW)).toEqual([PROJECT]);
});

test('none starts for a claim that was requested too long ago', async () => {
  await clock.advanceBy(LIMIT_MS + 1);
  expect(fence.mayStart(PROJECT, 0, FORMER)).toBe(false);
});

test('one starts for a late claim, and ends earlier than others', async () => {
  await clock.advanceBy(8_000);
  begin(2);
  underWay.set(PROJECT, 1);
  expect(fence.mayStart(PROJECT, 1_000, FORMER)).toBe(true);
  await clock.advanceTo(LIMIT_MS + 1_001);
  expect(interrupted).toEqual([PROJECT]);
});

test('a project without attempts is forgotten, and no timer is left without engines', async () => {
  begin();
  underWay.delete(PROJECT);
  await clock.advanceBy(LIMIT_MS + 1);
  expect(fence.projectsToRequest(FORMER)).toEqual([]);
  expect(interrupted).toEqual([]);
  begin();
  leave();
  expect(clock.nextTimerAtMs).toBeUndefined();
});
