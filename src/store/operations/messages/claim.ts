/** Which messages does a worker get, and which wait in the line of their busy origin? */
import { type OriginLine, readLine } from '../../../engine/lanes/origin-line.ts';
import type { ClaimRequest } from '../../../engine/messages/claims.ts';
import type { ProjectId } from '../../../engine/model.ts';
import type { StoreLimits } from '../../../engine/stores.ts';
import type { Queries } from '../../driver.ts';
import { flowRefsOf, nextWakeAtMs, wokenLanes } from '../lanes/flow-lanes.ts';
import { LINE, NOT_ENDING } from '../lanes/lines.ts';
import { projectsWithHeld } from '../lanes/project-gate.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { write } from '../operation.ts';
import { CANDIDATE_FIELDS, type Candidate, Round } from './claim-round.ts';
import { type ClaimedRow, own } from './claimed-rows.ts';
import { projectsInTurn } from './projects-in-turn.ts';

/**
 * The fewest due messages looked at, even for few slots. Those without a slot move to their origin's line. No more than
 * a whole claim takes, so that none moves there only because a claim is full.
 */
const WINDOW_MIN = 64;

/** The most due messages looked at in one transaction. It bounds the cost when all are for one full origin. */
const EXAMINED_MAX = 500;
/** Flow-control keys served in one transaction; the others follow in the next. */
const LANES_MAX = 64;

export interface ClaimArgs {
  request: ClaimRequest;
  nowMs: number;
}

export interface ClaimRows {
  claimed: ClaimedRow[];
  waitingLines: OriginLine[];
  emptied: OriginLine[];
  nextDueAtMs: number | null;
  isLocked: boolean;
  lastProject?: ProjectId | undefined;
}

export const claim = write(
  {
    weight: ({ request }) => ({ rows: request.limit }),
    touches: (args, limits) => ({ find: (queries) => projectsOfClaim(queries, args, limits), isChoosy: true }),
  },
  async (context: WriteContext, { request, nowMs }: ClaimArgs): Promise<ClaimRows> => {
    const { tx } = context;
    const round = new Round(context, request, nowMs);
    if (request.due) await round.releaseHeldProjects();
    const emptied = request.dueFirst ? [] : await serveLines(round, request.linesToServe);
    if (request.due && request.lanesFirst) await serveLanes(round);
    const lastProject = request.due ? await takeDue(round, request.afterProject) : undefined;
    if (request.due && !request.lanesFirst) await serveLanes(round);
    if (request.dueFirst) emptied.push(...(await serveLines(round, request.linesToServe)));
    await round.sendBack();
    const claimed = await own(context, round.taken, request.worker, nowMs);
    await round.flows.save(context.due);
    for (const line of round.waitingLines) context.due.noteWaitingLine(line);
    const nextMs = (await round.hasHeldWithRoom()) ? nowMs : await nextDueAtMs(tx);
    const isOthers = round.leftToOthers && claimed.length === 0 && round.waitingLines.length === 0;
    return {
      claimed,
      waitingLines: round.waitingLines,
      emptied,
      nextDueAtMs: nextMs,
      isLocked: isOthers && nextMs !== null && nextMs <= nowMs,
      lastProject,
    };
  },
);

/** The projects whose shared state a claim may touch. Messages of other projects stay where they are. */
async function projectsOfClaim(
  queries: Queries,
  { request, nowMs }: ClaimArgs,
  { parallelismMax }: StoreLimits,
): Promise<ReadonlySet<ProjectId>> {
  const projects = new Set<ProjectId>();
  const addAll = (rows: readonly { project_id: ProjectId }[]): void => {
    for (const { project_id } of rows) projects.add(project_id);
  };
  for (const line of request.linesToServe) {
    const { projectId, origin } = readLine(line);
    if (projects.has(projectId)) continue;
    addAll(
      await queries.query(
        `select distinct project_id from (select project_id, flow_key from messages
           where project_id = ? and origin = ? and claim_token is null and line = ${LINE.origin} order by due_at_ms, key limit ?) as first
         where ${parallelismMax > 0 ? '1 = 1' : 'flow_key is not null'}`,
        [projectId, origin, request.limit + 1],
      ),
    );
  }
  if (!request.due) return projects;
  addAll(
    await queries.query(
      `select distinct project_id from (select project_id from flow_keys where wake_at_ms <= ?
         order by wake_at_ms, project_id, key limit ?) as first`,
      [nowMs, LANES_MAX],
    ),
  );
  if (parallelismMax === 0) return projects;
  for (const projectId of await projectsWithHeld(queries)) projects.add(projectId);
  if (request.afterProject !== undefined) {
    for (const projectId of (await projectsInTurn(queries, request.afterProject, nowMs)).due) projects.add(projectId);
    return projects;
  }
  addAll(
    await queries.query(
      `select distinct project_id from (select project_id from messages
         where claim_token is null and line = ${LINE.due} and due_at_ms <= ? order by due_at_ms, key limit ?) as first`,
      [nowMs, EXAMINED_MAX],
    ),
  );
  return projects;
}

/** Takes messages of each line up to its room; returns the lines that are empty now. */
async function serveLines(round: Round, lines: readonly OriginLine[]): Promise<OriginLine[]> {
  const emptied: OriginLine[] = [];
  for (const line of lines) {
    if (round.isFull) break;
    const { projectId, origin } = readLine(line);
    const room = Math.min(round.roomOf(line), round.messagesLeft);
    // No check of the due time: they were due when they came here, and a clock set back since must not block them.
    const candidates = await round.tx.query<Candidate>(
      `select ${CANDIDATE_FIELDS} from messages
       where project_id = ? and origin = ? and claim_token is null and line = ${LINE.origin} and ${NOT_ENDING}
       order by due_at_ms, key limit ? for update skip locked`,
      [projectId, origin, room + 1],
    );
    await round.flows.load(flowRefsOf(candidates));
    await round.load(candidates);
    const takenBefore = round.taken.length;
    let gone = 0;
    for (const candidate of candidates) {
      if (round.taken.length - takenBefore === room || !round.mayTouch(candidate)) break;
      if (!round.takeOrSendBack(candidate)) break;
      gone += 1;
    }
    if (gone < candidates.length || gone > room) continue;
    emptied.push(line);
    round.noteEmptied(line);
  }
  return emptied;
}

/**
 * Takes due messages in due order. With `afterProject` projects take turns, each in its own order, and the answer is
 * the last one that had its turn: then one with few messages does not wait behind one with a million.
 */
async function takeDue(round: Round, afterProject: ProjectId | undefined): Promise<ProjectId | undefined> {
  if (afterProject === undefined) {
    await takeInOrder(round, undefined, round.messagesLeft, 1);
    return undefined;
  }
  const { due, last } = await projectsInTurn(round.tx, afterProject, round.nowMs);
  for (const [index, projectId] of due.entries()) {
    const turns = due.length - index;
    await takeInOrder(round, projectId, Math.ceil(round.messagesLeft / turns), turns);
    if (round.isFull) return projectId;
  }
  return last;
}

/**
 * Takes up to `share` due messages, of one project or of all. A message gets no slot when its origin or project has its
 * share, or when the worker is full. It then leaves the due index. Otherwise a crowd for a few origins would stand
 * before all others, and would shrink by only a few slots at a time (P9). `turns`: how many projects share what may be
 * looked at.
 */
async function takeInOrder(
  round: Round,
  projectId: ProjectId | undefined,
  share: number,
  turns: number,
): Promise<void> {
  const takenBefore = round.taken.length;
  let [examined, left] = [0, share];
  let last = { due_at_ms: -1, key: -1 };
  const ofProject = projectId === undefined ? '' : 'project_id = ? and ';
  while (!round.isFull && left > 0 && examined < EXAMINED_MAX / turns) {
    const size = Math.ceil(Math.min(EXAMINED_MAX / turns - examined, Math.max(left, WINDOW_MIN / turns)));
    const candidates = await round.tx.query<Candidate>(
      `select ${round.candidateFields} from messages
       where ${ofProject}claim_token is null and line = ${LINE.due} and due_at_ms <= ? and (due_at_ms, key) > (?, ?)
         and ${NOT_ENDING}
       order by due_at_ms, key limit ? for update skip locked`,
      [...(projectId === undefined ? [] : [projectId]), round.nowMs, last.due_at_ms, last.key, size],
    );
    await round.load(candidates);
    for (const candidate of candidates) {
      left = share - (round.taken.length - takenBefore);
      if (round.mayTouch(candidate)) round.takeOrWait(candidate, left > 0);
      last = candidate;
    }
    left = share - (round.taken.length - takenBefore);
    examined += candidates.length;
    if (candidates.length < size) break;
  }
}

/**
 * Serves the wait lists of flow-control keys in turn. Each gets at most its share of the slots, so a key with a hundred
 * thousand waiting messages delays no other key.
 */
async function serveLanes(round: Round): Promise<void> {
  if (round.isFull) return;
  const woken = await wokenLanes(round.tx, round.nowMs, LANES_MAX);
  const rows = woken.filter(({ project_id, key }) => round.mayTouch({ project_id, flow_key: key }));
  for (const [index, row] of rows.entries()) {
    if (round.isFull) return;
    const lane = round.flows.find(row.project_id, row.key) ?? round.flows.add(row);
    const share = Math.ceil(round.messagesLeft / (rows.length - index));
    const room = Math.min(share, lane.goesLeft(round.nowMs));
    round.flows.markServed(lane);
    if (room === 0) continue;
    const candidates = await round.tx.query<Candidate>(
      `select ${round.candidateFields} from messages
       where project_id = ? and flow_key = ? and claim_token is null and line = ${LINE.flow} and due_at_ms <= ?
         and ${NOT_ENDING}
       order by due_at_ms, key limit ? for update skip locked`,
      [row.project_id, row.key, round.nowMs, room],
    );
    await round.load(candidates);
    for (const candidate of candidates) {
      if (round.isFull) break; // it stays first in the list of its key
      round.takeOrWait(candidate);
    }
  }
}

/** The earliest time at which the due index or a flow-control key has work; null: none. */
export async function nextDueAtMs(queries: Queries): Promise<number | null> {
  const [row] = await queries.query<{ due_at_ms: number }>(
    `select due_at_ms from messages where claim_token is null and line = ${LINE.due} and ${NOT_ENDING}
     order by due_at_ms, key limit 1`,
  );
  const wakeAtMs = await nextWakeAtMs(queries);
  if (!row) return wakeAtMs;
  return wakeAtMs === null ? row.due_at_ms : Math.min(row.due_at_ms, wakeAtMs);
}
