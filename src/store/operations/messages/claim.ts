/** Which messages does a worker get, and which wait in the line of their busy origin? */
import { lineOf, type OriginLine, readLine } from '../../../engine/lanes/origin-line.ts';
import type { ClaimRequest } from '../../../engine/messages/claims.ts';
import type { ProjectId } from '../../../engine/model.ts';
import type { StoreLimits } from '../../../engine/stores.ts';
import type { Queries, SqlValue, Transaction } from '../../driver.ts';
import { type FlowLane, FlowLanes, flowRefsOf, nextWakeAtMs, wokenLanes } from '../lanes/flow-lanes.ts';
import { LINE, NOT_ENDING } from '../lanes/lines.ts';
import { ProjectGate, projectsWithHeld, releaseHeld } from '../lanes/project-gate.ts';
import { EVERYTHING, type LockedProjects } from '../locked-projects.ts';
import { lastEventTimes, type WriteContext } from '../logs/log-writer.ts';
import { read, write } from '../operation.ts';
import { ClaimRooms } from './claim-rooms.ts';
import { projectsInTurn } from './projects-in-turn.ts';
import { CONTENT_FIELDS, type ContentRow, codeOfLogState } from './rows.ts';

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

export interface ClaimedRow extends ContentRow {
  queue_id: number | null;
  flow_key: string | null;
  run_key: number | null;
  journal_position: number | null;
  bytes: number;
  retried: number;
  parkings: number | null;
  claim_token: number;
  claimed_at_ms: number;
}

export interface ClaimRows {
  claimed: ClaimedRow[];
  waitingLines: OriginLine[];
  emptied: OriginLine[];
  nextDueAtMs: number | null;
  isLocked: boolean;
  lastProject?: ProjectId | undefined;
}

export interface Candidate {
  key: number;
  project_id: number;
  origin: string;
  due_at_ms: number;
  bytes: number;
  flow_key: string | null;
  /** Of a message that is in no line: whether others wait in its line already. Absent: there are no lines. */
  is_behind?: number | boolean;
}

export const CANDIDATE_FIELDS = 'key, project_id, origin, due_at_ms, bytes, flow_key';

/** With whether others wait in the line of the candidate already. */
const CANDIDATE_BEHIND_FIELDS = `${CANDIDATE_FIELDS}, exists lookup (select 1 from messages w
  where w.project_id = messages.project_id and w.origin = messages.origin and w.claim_token is null and w.line = ${LINE.origin}
  ) as is_behind`;

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

/** What one claim has chosen so far, and what room the request, the keys and the projects have left. */
class Round {
  readonly tx: Transaction;
  readonly nowMs: number;
  readonly flows: FlowLanes;
  readonly taken: (Candidate & { claimToken: number })[] = [];
  readonly #gate: ProjectGate;
  readonly #locked: LockedProjects;
  readonly #request: ClaimRequest;
  readonly #rooms: ClaimRooms;
  /** Lines of which no message is left, though their rows do not show it yet. */
  readonly #emptied = new Set<OriginLine>();
  readonly #toOrigin: Candidate[] = [];
  readonly #toLane: [key: number, line: number][] = [];
  #bytes = 0;
  #bytesReached = false;

  constructor({ tx, locked, limits }: WriteContext, request: ClaimRequest, nowMs: number) {
    this.tx = tx;
    this.#locked = locked;
    this.nowMs = nowMs;
    this.#request = request;
    this.#rooms = new ClaimRooms(request);
    this.flows = new FlowLanes(tx, nowMs);
    this.#gate = new ProjectGate(tx, limits.parallelismMax);
  }

  /** What to read of those that are in no line. */
  get candidateFields(): string {
    return this.#request.hasLines ? CANDIDATE_BEHIND_FIELDS : CANDIDATE_FIELDS;
  }

  get isFull(): boolean {
    return this.#bytesReached || this.taken.length >= this.#request.limit;
  }

  get messagesLeft(): number {
    return this.#request.limit - this.taken.length;
  }

  /** Lines that messages have joined in this round. */
  get waitingLines(): OriginLine[] {
    return [...new Set(this.#toOrigin.map(({ project_id, origin }) => lineOf(project_id, origin)))];
  }

  roomOf(line: OriginLine): number {
    return this.#rooms.of(line);
  }

  /**
   * Whether the lanes of a candidate's project may be touched. A candidate that came after the projects were locked
   * stays where it is until the next claim.
   */
  mayTouch({ project_id, flow_key }: Pick<Candidate, 'project_id' | 'flow_key'>): boolean {
    return (flow_key === null && !this.#gate.isLimited) || this.#locked.has(project_id);
  }

  /** Whether the claim had room but found nothing to take: other workers hold what is due now. */
  get leftToOthers(): boolean {
    return this.#locked !== EVERYTHING && !this.isFull;
  }

  /** Counts the attempts in flight of the projects of `candidates`. */
  async load(candidates: readonly Candidate[]): Promise<void> {
    await this.#gate.load(candidates.map(({ project_id }) => project_id));
  }

  /** Releases messages from lines of projects with room: those released before may have stopped at another lane. */
  async releaseHeldProjects(): Promise<void> {
    if (!this.#gate.isLimited) return;
    const projects = await projectsWithHeld(this.tx);
    const held = projects.filter((projectId) => this.#locked.has(projectId));
    const released = await releaseHeld(this.tx, this.#gate, held);
    await this.flows.load(flowRefsOf(released));
  }

  /** Whether a project has room left and messages that wait for it. */
  async hasHeldWithRoom(): Promise<boolean> {
    if (!this.#gate.isLimited) return false;
    const projectIds = await projectsWithHeld(this.tx);
    await this.#gate.load(projectIds);
    return projectIds.some((projectId) => this.#gate.roomOf(projectId) > 0);
  }

  /** Takes a candidate of the due index or of a key with room, or moves it into the line of its origin or project. */
  takeOrWait(candidate: Candidate, mayTake = true): void {
    if (this.#gate.roomOf(candidate.project_id) === 0) this.#toLane.push([candidate.key, LINE.project]);
    else if (mayTake && this.#hasRoom(candidate) && this.#take(candidate)) return;
    else this.#toOrigin.push(candidate);
    this.#laneOf(candidate)?.noteReleased();
  }

  /** A candidate from the line of its origin, which has room: false when it stays there, because the worker is full. */
  takeOrSendBack(candidate: Candidate): boolean {
    const { key, project_id } = candidate;
    const lane = this.#laneOf(candidate);
    if (this.#gate.roomOf(project_id) === 0) {
      this.#toLane.push([key, LINE.project]);
      return true;
    }
    if (lane && lane.startsLeft(this.nowMs) === 0) {
      this.#toLane.push([key, LINE.flow]);
      lane.takeBack();
      return true;
    }
    if (!this.#take(candidate)) return false;
    lane?.takeBack();
    return true;
  }

  /** Writes which messages move into which line. */
  async sendBack(): Promise<void> {
    const moves: SqlValue[][] = [...this.#toOrigin.map(({ key }) => [key, LINE.origin]), ...this.#toLane];
    await this.tx.updateMany('messages', 'key', ['line'], moves);
  }

  /** Once a message exceeds the bytes left, nothing more is taken: else small ones would always overtake large ones. */
  #take(candidate: Candidate): boolean {
    if (this.isFull) return false;
    const mayExceed = this.taken.length === 0 && !this.#request.isStrict;
    if (!mayExceed && this.#bytes + candidate.bytes > this.#request.bytesMax) {
      this.#bytesReached = true;
      return false;
    }
    this.#bytes += candidate.bytes;
    this.#rooms.take(lineOf(candidate.project_id, candidate.origin));
    this.taken.push({ ...candidate, claimToken: this.#request.firstToken + this.taken.length });
    this.#gate.start(candidate.project_id);
    this.#laneOf(candidate)?.start(this.nowMs);
    return true;
  }

  noteEmptied(line: OriginLine): void {
    this.#emptied.add(line);
  }

  /** A due message does not overtake those that wait in its line. */
  #hasRoom({ project_id, origin, is_behind }: Candidate): boolean {
    const line = lineOf(project_id, origin);
    return (!is_behind || this.#emptied.has(line)) && this.roomOf(line) > 0;
  }

  #laneOf({ project_id, flow_key }: Candidate): FlowLane | undefined {
    return flow_key === null ? undefined : this.flows.find(project_id, flow_key);
  }
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

/** Without the body where the endpoint will fetch it: no limit would count its memory. */
const CLAIMED_CONTENT_FIELDS = CONTENT_FIELDS.replace(
  'c.body',
  'case when m.bytes = 0 then null else c.body end as body',
);

/** A message to claim, with a token that was never used. */
export interface Taken {
  key: number;
  due_at_ms: number;
  claimToken: number;
}

/** Writes the claims and their ACTIVE events, and reads what is to send; sorted by due time, then key. */
export async function own(
  { tx, logs }: WriteContext,
  taken: readonly Taken[],
  worker: string,
  nowMs: number,
): Promise<ClaimedRow[]> {
  if (taken.length === 0) return [];
  const inOrder = taken.toSorted((a, b) => a.due_at_ms - b.due_at_ms || a.key - b.key);
  const keys = inOrder.map(({ key }) => key);
  const rows = await tx.query<Omit<ClaimedRow, 'claim_token' | 'claimed_at_ms'>>(
    `select ${CLAIMED_CONTENT_FIELDS}, m.retried, m.parkings, m.queue_id, m.flow_key, m.run_key, m.journal_position, m.bytes
     from messages m lookup contents c on (c.key = m.key) where m.key in (??)`,
    [keys],
  );
  const rowByKey = new Map(rows.map((row) => [row.key, row]));
  const lastEventAtMs = await lastEventTimes({ tx, logs }, keys, Math.min(...rows.map((row) => row.created_at_ms)));
  const claimed = inOrder.map(({ key, claimToken }) => {
    const row = rowByKey.get(key);
    if (!row) throw new Error(`message ${key} has no content`);
    return {
      ...row,
      claim_token: claimToken,
      claimed_at_ms: Math.max(nowMs, row.created_at_ms, lastEventAtMs.get(key) ?? 0),
    };
  });
  await tx.updateMany(
    'messages',
    'key',
    ['claim_token', 'claimed_at_ms', 'worker', 'line'],
    claimed.map((row): SqlValue[] => [row.key, row.claim_token, row.claimed_at_ms, worker, LINE.due]),
  );
  const active = codeOfLogState('ACTIVE');
  await logs.append(
    tx,
    claimed.map((row) => ({
      projectId: row.project_id,
      key: row.key,
      runKey: row.run_key,
      events: [[row.claimed_at_ms, active]],
      floorMs: row.claimed_at_ms,
    })),
  );
  return claimed;
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

/** Lines that have messages. Each takes one step in the index, however many messages wait there. */
export const waitingLines = read(
  async (
    queries: Queries,
    { after, limit }: { after: OriginLine | undefined; limit: number },
  ): Promise<OriginLine[]> => {
    const lines: OriginLine[] = [];
    let from: { projectId: number; origin: string } | undefined = after
      ? readLine(after)
      : await nextProject(queries, -1);
    while (from && lines.length < limit) {
      const { projectId, origin } = from;
      const origins = await originsOf(queries, projectId, { after: origin, limit: limit - lines.length });
      lines.push(...origins.map((each) => lineOf(projectId, each)));
      from = await nextProject(queries, projectId);
    }
    return lines;
  },
);

async function nextProject(
  queries: Queries,
  after: number,
): Promise<{ projectId: number; origin: string } | undefined> {
  const [row] = await queries.query<{ project_id: number }>(
    `select project_id from messages where claim_token is null and line = ${LINE.origin} and project_id > ? order by project_id limit 1`,
    [after],
  );
  return row && { projectId: row.project_id, origin: '' };
}

async function originsOf(
  queries: Queries,
  projectId: number,
  { after, limit }: { after: string; limit: number },
): Promise<string[]> {
  const rows = await queries.query<{ origin: string }>(
    `with recursive lines (origin) as (
       select origin from (select origin from messages
         where project_id = ? and claim_token is null and line = ${LINE.origin} and origin > ? order by origin limit 1) as first
       union all
       select (select m.origin from messages m
         where m.project_id = ? and m.claim_token is null and m.line = ${LINE.origin} and m.origin > lines.origin
         order by m.origin limit 1)
       from lines where lines.origin is not null)
     select origin from lines where origin is not null limit ?`,
    [projectId, after, projectId, limit],
  );
  return rows.map(({ origin }) => origin);
}
