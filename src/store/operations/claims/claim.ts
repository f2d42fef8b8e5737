/** Claims messages for a worker, and moves due messages without a slot into their endpoint backlogs. */

import type { ClaimRequest, ClaimResult, RotationState } from '../../../engine/dispatch/claims.ts';
import { type BacklogKey, parseBacklogKey } from '../../../engine/lanes/backlog-key.ts';
import type { ProjectId } from '../../../engine/model.ts';
import type { StoreLimits } from '../../../engine/stores.ts';
import type { Queries } from '../../driver.ts';
import { nextWakeAtMs, wokenLanes } from '../lanes/flow-lanes.ts';
import { projectsWithWaiting } from '../lanes/project-gate.ts';
import { NOT_ENDING, PAST_LANES, WAIT_STATE } from '../lanes/wait-states.ts';
import { excluding } from '../locking/placement.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { write } from '../operation.ts';
import { BacklogRotation } from './backlog-rotation.ts';
import { type Candidate, ClaimRound } from './claim-round.ts';
import { type ClaimedRow, decodeClaimed, saveClaims } from './claimed-rows.ts';
import { type ProjectRotation, rotateProjects } from './project-rotation.ts';

/**
 * The minimum number of due messages that a claim examines, however few slots it has. Messages that get no slot move to
 * the backlog of their endpoint. The number is at most the size of a full claim, so that no message moves to a backlog
 * only because the claim is full.
 */
const WINDOW_MIN = 64;

/** Due messages examined in one transaction: the maximum bounds the cost when all are for one busy endpoint. */
const EXAMINED_MAX = 500;
/** The number of flow-control keys that one transaction serves; the next transaction serves the other keys. */
const LANES_MAX = 64;

export interface ClaimArgs {
  request: ClaimRequest;
  nowMs: number;
}

export interface ClaimRows {
  claimed: ClaimedRow[];
  waitingBacklogs: BacklogKey[];
  emptied: BacklogKey[];
  nextDueAtMs: number | null;
  isLocked: boolean;
  rotation?: RotationState | undefined;
}

/** Claims due messages, each under a token that no earlier claim had. */
export const claim = write(
  {
    weight: ({ request }) => ({ rows: request.limit }),
    touches: (args, limits) => ({ find: (queries) => projectsOfClaim(queries, args, limits), skipsLocked: true }),
  },
  async (context: WriteContext, { request, nowMs }: ClaimArgs): Promise<ClaimRows> => {
    const { tx } = context;
    const moving = await context.placement.moving();
    const round = new ClaimRound(context, request, nowMs, moving);
    const backlogs = new BacklogRotation(round, request);
    const rotation = request.due ? await serveDue(round, backlogs, request) : undefined;
    await backlogs.serve();
    await round.saveMoves();
    context.placement.require(round.projects);
    const claimed = await saveClaims(context, round.taken, request.worker, nowMs);
    await round.flows.save(context.due);
    for (const backlog of round.waitingBacklogs) context.due.noteWaitingBacklog(backlog);
    const nextMs = (await round.hasWaitingWithCapacity())
      ? nowMs
      : (round.leftDueAtMs ?? (await nextDueAtMs(tx, moving)));
    const isOthers = round.leftToOthers && claimed.length === 0 && round.waitingBacklogs.length === 0;
    return {
      claimed,
      waitingBacklogs: round.waitingBacklogs,
      emptied: backlogs.emptied,
      nextDueAtMs: nextMs,
      isLocked: isOthers && nextMs !== null && nextMs <= nowMs,
      rotation,
    };
  },
  undefined,
  ({ claimed, nextDueAtMs: dueAtMs, ...rest }): ClaimResult => ({
    ...rest,
    claimed: claimed.map(decodeClaimed),
    nextDueAtMs: dueAtMs ?? undefined,
  }),
);

/** The projects whose shared state a claim may touch. Messages of other projects are left unchanged. */
async function projectsOfClaim(
  queries: Queries,
  { request, nowMs }: ClaimArgs,
  { parallelismMax }: StoreLimits,
): Promise<ReadonlySet<ProjectId>> {
  const projects = new Set<ProjectId>();
  const addAll = (rows: readonly { project_id: ProjectId }[]): void => {
    for (const { project_id } of rows) projects.add(project_id);
  };
  const ofBacklogs = [...new Set(request.backlogsToServe.map((backlog) => parseBacklogKey(backlog).projectId))];
  if (parallelismMax > 0) for (const projectId of ofBacklogs) projects.add(projectId);
  const [withKeys, woken] = await Promise.all([
    parallelismMax > 0 ? [] : withKeysInBacklogs(queries, ofBacklogs),
    request.due ? withWokenKeys(queries, nowMs) : [],
  ]);
  addAll([...withKeys, ...woken]);
  if (!request.due || parallelismMax === 0) return projects;
  for (const projectId of await projectsWithWaiting(queries)) projects.add(projectId);
  if (request.rotation !== undefined) {
    for (const { id } of (await rotateProjects(queries, request.rotation, nowMs)).due) projects.add(id);
    return projects;
  }
  addAll(
    await queries.query(
      `select distinct project_id from (select project_id from messages
         where claim_token is null and wait_state = ${WAIT_STATE.due} and due_at_ms <= ? order by due_at_ms, key limit ?) as first`,
      [nowMs, EXAMINED_MAX],
    ),
  );
  return projects;
}

type OfProject = { project_id: ProjectId };

/** The projects that have messages with a flow-control key in their backlogs. */
async function withKeysInBacklogs(queries: Queries, projectIds: readonly ProjectId[]): Promise<OfProject[]> {
  if (projectIds.length === 0) return [];
  return await queries.query(
    `select p.value as project_id from list (??) p where exists lookup (select 1 from messages m
       where m.project_id = p.value and m.claim_token is null and m.wait_state in (${PAST_LANES}) and m.flow_key is not null)`,
    [projectIds],
  );
}

function withWokenKeys(queries: Queries, nowMs: number): Promise<OfProject[]> {
  return queries.query(
    `select distinct project_id from (select project_id from flow_keys where wake_at_ms <= ?
       order by wake_at_ms, project_id, key limit ?) as first`,
    [nowMs, LANES_MAX],
  );
}

/**
 * Serves the due index and the wait lists of keys, in the order of the request: with `dueFirst` before the backlogs,
 * otherwise after the backlogs have taken up to half of the slots.
 */
async function serveDue(
  round: ClaimRound,
  backlogs: BacklogRotation,
  request: ClaimRequest,
): Promise<RotationState | undefined> {
  const half = Math.ceil(request.limit / 2);
  await round.releaseWaitingOfProjects();
  const nextProjects = rotationOf(round, request); // awaited later, so that the rotation is read with the backlogs
  if (request.dueFirst) round.limitTo(Math.max(half, request.limit - backlogs.capacity));
  else await backlogs.serve(half);
  if (request.lanesFirst) await serveLanes(round);
  const rotation = await takeDue(round, nextProjects);
  if (!request.lanesFirst) await serveLanes(round);
  round.limitTo(request.limit);
  return rotation;
}

/** The next projects in the rotation, if the claim rotates projects. */
function rotationOf({ tx, nowMs }: ClaimRound, { rotation }: ClaimRequest): Promise<ProjectRotation> | undefined {
  if (rotation === undefined) return undefined;
  const nextProjects = rotateProjects(tx, rotation, nowMs);
  nextProjects.catch(() => {}); // the later statements of the transaction fail too, and report the error
  return nextProjects;
}

/**
 * Takes due messages in due order. With `nextProjects`, projects are served in rotation, each in its own due order, so
 * that a project with few due messages does not wait behind a project with a million. Returns the rotation for the next
 * claim.
 */
async function takeDue(
  round: ClaimRound,
  nextProjects: Promise<ProjectRotation> | undefined,
): Promise<RotationState | undefined> {
  if (nextProjects === undefined) {
    if (!round.isFull) await takeInOrder(round, undefined, round.messagesLeft, 1);
    return undefined;
  }
  const { due: all, after, last, seen } = await nextProjects;
  if (round.isFull) return { after, seen };
  const takenBefore = round.taken.length;
  const due = all.filter(({ id }) => !round.moving.has(id));
  const fresh = due.filter(({ isFresh }) => isFresh);
  // Half of the slots, rounded down: a single slot is for the next project in the rotation.
  const ofFresh = Math.floor(round.messagesLeft / 2 / fresh.length);
  const inOrder = ofFresh > 0 ? [...fresh, ...due.filter(({ isFresh }) => !isFresh)] : due;
  const shareOf = (isFresh: boolean, left: number) => {
    const share = Math.ceil(round.messagesLeft / left);
    return isFresh ? Math.max(share, ofFresh) : share;
  };
  // The first messages of all projects are read together, because separate reads would cost a round trip each.
  const firsts = await readWindows(
    round,
    inOrder.map(({ id, isFresh, dueAtMs, key }) => ({
      id,
      size: windowOf(round, shareOf(isFresh, due.length), due.length),
      after: { due_at_ms: dueAtMs, key: key - 1 },
    })),
  );
  for (const [index, { id, isFresh }] of inOrder.entries()) {
    const left = inOrder.length - index;
    await takeInOrder(round, id, shareOf(isFresh, left), left, firsts[index]);
    if (!round.isFull) continue;
    round.noteLeft(firsts.slice(index + 1).flatMap(({ candidates }) => candidates));
    return { after: isFresh && ofFresh > 0 ? after : id, seen };
  }
  // Without taken messages, the due projects are read again: those in the list may be empty, and others may be due now.
  return { after: last, seen: round.taken.length > takenBefore ? seen : undefined };
}

/** The next messages in the due index, of one project or of all projects. */
interface Window {
  candidates: Candidate[];
  /** Whether more messages may follow. */
  isFull: boolean;
}

type DuePosition = Pick<Candidate, 'due_at_ms' | 'key'>;

const BEFORE_ALL: DuePosition = { due_at_ms: -1, key: -1 };

/**
 * How many messages to read for a project that may take `left` slots, when `projectCount` projects share the messages
 * that are examined beyond the slots.
 */
function windowOf({ limit }: ClaimRound, left: number, projectCount: number): number {
  return Math.ceil(left + Math.max(0, WINDOW_MIN - limit) / projectCount);
}

async function readWindow(
  round: ClaimRound,
  projectId: ProjectId | undefined,
  size: number,
  after = BEFORE_ALL,
): Promise<Window> {
  const { tx, nowMs, candidateFields, moving } = round;
  if (projectId !== undefined) {
    const [window] = await readWindows(round, [{ id: projectId, size, after }]);
    return window ?? { candidates: [], isFull: false };
  }
  const { and: isHere, params: others } = excluding(moving);
  const candidates = await tx.query<Candidate>(windowText(candidateFields, '', isHere), [
    nowMs,
    after.due_at_ms,
    after.key,
    ...others,
    size,
  ]);
  return { candidates, isFull: candidates.length === size };
}

/** Reads one window for each of the projects. */
async function readWindows(
  { tx, nowMs, candidateFields }: ClaimRound,
  projects: readonly { id: ProjectId; size: number; after: DuePosition }[],
): Promise<Window[]> {
  const windows = await tx.queryEach<Candidate>(
    windowText(candidateFields, 'project_id, '),
    projects.map(({ id, size, after }) => [id, nowMs, id, after.due_at_ms, after.key, size]),
  );
  return projects.map(({ size }, index) => {
    const candidates = windows[index] ?? [];
    return { candidates, isFull: candidates.length === size };
  });
}

/**
 * Selects the due messages of all projects, or, with `first`, of one project. The condition is a range of the index
 * instead of `project_id = ?`: no other index has the order of that range, so PostgreSQL never searches the due messages
 * of all projects for the messages of one project, whatever its statistics are.
 */
function windowText(candidateFields: string, first: '' | 'project_id, ', isHere = ''): string {
  const projectParam = first === '' ? '' : '?, ';
  return `select ${candidateFields} from messages
     where claim_token is null and wait_state = ${WAIT_STATE.due}
       and (${first}due_at_ms) <= (${projectParam}?) and (${first}due_at_ms, key) > (${projectParam}?, ?) and ${NOT_ENDING}${isHere}
     order by ${first}due_at_ms, key limit ? for update skip locked`;
}

/**
 * Takes up to `share` due messages, of one project or of all. A message gets no slot when its endpoint or project is at
 * its limit, or when the worker is full. Such a message leaves the due index: otherwise the messages of a few endpoints
 * would stay in front of all others, and only a few of them would leave at a time (P9). `projectCount` is the number of
 * projects that share the maximum of examined messages.
 */
async function takeInOrder(
  round: ClaimRound,
  projectId: ProjectId | undefined,
  share: number,
  projectCount: number,
  first?: Window,
): Promise<void> {
  const takenBefore = round.taken.length;
  const leftOf = () => share - (round.taken.length - takenBefore);
  let window = first ?? (await readWindow(round, projectId, windowOf(round, share, projectCount)));
  let examined = 0;
  while (true) {
    await round.load(window.candidates);
    for (const candidate of window.candidates) {
      if (round.mayTouch(candidate)) round.takeOrWait(candidate, leftOf() > 0);
    }
    examined += window.candidates.length;
    if (!window.isFull) return;
    if (round.isFull || leftOf() <= 0 || examined >= EXAMINED_MAX / projectCount)
      return round.noteLeft(window.candidates);
    const size = Math.min(windowOf(round, leftOf(), projectCount), Math.ceil(EXAMINED_MAX / projectCount - examined));
    window = await readWindow(round, projectId, size, window.candidates.at(-1));
  }
}

/**
 * Serves the wait lists of flow-control keys round-robin. Each key gets at most its share of the slots, so a key with a
 * hundred thousand waiting messages delays no other key.
 */
async function serveLanes(round: ClaimRound): Promise<void> {
  if (round.isFull || round.touchesNoLane) return;
  const woken = await wokenLanes(round.tx, round.nowMs, LANES_MAX, round.moving);
  const rows = woken.filter(({ project_id, key }) => round.mayTouch({ project_id, flow_key: key }));
  for (const [index, row] of rows.entries()) {
    if (round.isFull) return;
    const lane = round.flows.find(row.project_id, row.key) ?? round.flows.add(row);
    const share = Math.ceil(round.messagesLeft / (rows.length - index));
    const capacity = Math.min(share, lane.releasesLeft(round.nowMs));
    round.flows.markServed(lane);
    if (capacity === 0) continue;
    const candidates = await round.tx.query<Candidate>(
      `select ${round.candidateFields} from messages
       where project_id = ? and flow_key = ? and claim_token is null and wait_state = ${WAIT_STATE.flow} and due_at_ms <= ?
         and ${NOT_ENDING}
       order by due_at_ms, key limit ? for update skip locked`,
      [row.project_id, row.key, round.nowMs, capacity],
    );
    await round.load(candidates);
    for (const candidate of candidates) {
      if (round.isFull) break; // this candidate stays first in the wait list of its key
      round.takeOrWait(candidate);
    }
  }
}

/** The earliest time at which the due index or a key has work for a project that is here; null if there is none. */
async function nextDueAtMs(queries: Queries, moving: Iterable<ProjectId>): Promise<number | null> {
  const { and, params } = excluding(moving);
  const [[row], wakeAtMs] = await Promise.all([
    queries.query<{ due_at_ms: number }>(
      `select due_at_ms from messages where claim_token is null and wait_state = ${WAIT_STATE.due} and ${NOT_ENDING}${and}
       order by due_at_ms, key limit 1`,
      params,
    ),
    nextWakeAtMs(queries, moving),
  ]);
  if (!row) return wakeAtMs;
  return wakeAtMs === null ? row.due_at_ms : Math.min(row.due_at_ms, wakeAtMs);
}
