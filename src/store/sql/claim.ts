/** Which due messages does a worker get, and which wait in the line of their busy origin? */
import type { ClaimRequest } from '../../engine/stores.ts';
import type { Queries, SqlValue } from '../driver.ts';
import { lastEventTimes, type WriteContext } from './log-writer.ts';
import { CONTENT_FIELDS, type ContentRow, codeOfLogState } from './rows.ts';

/** Due messages looked at in one transaction: what a window full of messages for one full origin may cost. */
const EXAMINED_MAX = 500;
/** Due messages looked at for the sake of few places: what does not get one leaves the due index for its origin's line. */
const WINDOW_MIN = 128;

export interface ClaimArgs {
  request: ClaimRequest;
  nowMs: number;
}

export interface ClaimedRow extends ContentRow {
  retried: number;
  claim_token: number;
  claimed_at_ms: number;
}

export interface ClaimRows {
  claimed: ClaimedRow[];
  parked: string[];
  emptied: string[];
  nextDueAtMs: number | null;
}

interface Candidate {
  key: number;
  origin: string;
  due_at_ms: number;
  bytes: number;
}

export async function claim(context: WriteContext, { request, nowMs }: ClaimArgs): Promise<ClaimRows> {
  const selection = new Selection(request);
  const emptied = await unpark(context.tx, request.unpark, selection);
  const overfull = request.due ? await takeDue(context.tx, nowMs, selection) : [];
  if (overfull.length > 0) {
    await context.tx.run('update messages set parked = 1 where key in (??)', [overfull.map(({ key }) => key)]);
  }
  const claimed = await own(context, selection.taken, request, nowMs);
  return {
    claimed,
    parked: [...new Set(overfull.map(({ origin }) => origin))],
    emptied,
    nextDueAtMs: await nextDueAtMs(context.tx),
  };
}

/** What was chosen so far, and what the request still has room for. */
class Selection {
  readonly taken: Candidate[] = [];
  readonly #request: ClaimRequest;
  readonly #roomLeft = new Map<string, number>();
  #bytes = 0;
  #bytesReached = false;

  constructor(request: ClaimRequest) {
    this.#request = request;
  }

  get isFull(): boolean {
    return this.#bytesReached || this.taken.length >= this.#request.limit;
  }

  get messagesLeft(): number {
    return this.#request.limit - this.taken.length;
  }

  roomOf(origin: string): number {
    const known = this.#roomLeft.get(origin);
    if (known !== undefined) return known;
    const { roomByOrigin, defaultRoom } = this.#request;
    return Math.max(0, Object.hasOwn(roomByOrigin, origin) ? (roomByOrigin[origin] ?? 0) : defaultRoom);
  }

  /** Says whether `candidate` fits. Once the bytes are used up nothing more does, or small ones would overtake for ever. */
  take(candidate: Candidate): boolean {
    if (this.isFull) return false;
    if (this.taken.length > 0 && this.#bytes + candidate.bytes > this.#request.bytesMax) {
      this.#bytesReached = true;
      return false;
    }
    this.#bytes += candidate.bytes;
    this.#roomLeft.set(candidate.origin, this.roomOf(candidate.origin) - 1);
    this.taken.push(candidate);
    return true;
  }
}

/** Takes parked messages of each origin up to its room; returns the origins that have none left. */
async function unpark(queries: Queries, origins: readonly string[], selection: Selection): Promise<string[]> {
  const emptied: string[] = [];
  for (const origin of origins) {
    if (selection.isFull) break;
    const room = Math.min(selection.roomOf(origin), selection.messagesLeft);
    // They were due when they were parked; a clock that was set back since must not lock them up.
    const candidates = await queries.query<Candidate>(
      `select key, origin, due_at_ms, bytes from messages
       where origin = ? and claim_token is null and parked = 1
       order by due_at_ms, key limit ? for update skip locked`,
      [origin, room + 1],
    );
    let taken = 0;
    while (taken < room && taken < candidates.length) {
      const candidate = candidates[taken];
      if (!candidate || !selection.take(candidate)) break;
      taken += 1;
    }
    if (taken === candidates.length) emptied.push(origin);
  }
  return emptied;
}

/**
 * Takes due messages in due order; returns those that were looked at and got no place, because their origin has its
 * share or the worker is full. They must not stay where they are: a crowd that a few origins have piled up would stand
 * before everyone else, and shrink by no more than a few places at a time (P9).
 */
async function takeDue(queries: Queries, nowMs: number, selection: Selection): Promise<Candidate[]> {
  const overfull: Candidate[] = [];
  let examined = 0;
  let last = { due_at_ms: -1, key: -1 };
  while (!selection.isFull && examined < EXAMINED_MAX) {
    const size = Math.min(EXAMINED_MAX - examined, Math.max(selection.messagesLeft, WINDOW_MIN));
    const candidates = await queries.query<Candidate>(
      `select key, origin, due_at_ms, bytes from messages
       where claim_token is null and parked = 0 and due_at_ms <= ? and (due_at_ms, key) > (?, ?)
       order by due_at_ms, key limit ? for update skip locked`,
      [nowMs, last.due_at_ms, last.key, size],
    );
    for (const candidate of candidates) {
      if (selection.roomOf(candidate.origin) === 0 || !selection.take(candidate)) overfull.push(candidate);
      last = candidate;
    }
    examined += candidates.length;
    if (candidates.length < size) break;
  }
  return overfull;
}

/** Writes the claims and their ACTIVE events, and reads what is to be sent. */
async function own(
  { tx, logs }: WriteContext,
  taken: Candidate[],
  request: ClaimRequest,
  nowMs: number,
): Promise<ClaimedRow[]> {
  if (taken.length === 0) return [];
  // The caller owns just `limit` tokens: one claim more could repeat a token and break P6.
  if (taken.length > request.limit)
    throw new Error(`claimed ${taken.length} messages where ${request.limit} were asked for`);
  const inOrder = taken.toSorted((a, b) => a.due_at_ms - b.due_at_ms || a.key - b.key);
  const keys = inOrder.map(({ key }) => key);
  const rows = await tx.query<ContentRow & { retried: number }>(
    `select ${CONTENT_FIELDS}, m.retried from messages m join contents c on c.key = m.key where m.key in (??)`,
    [keys],
  );
  const rowByKey = new Map(rows.map((row) => [row.key, row]));
  const lastEventAtMs = await lastEventTimes(tx, keys);
  const claimed = keys.map((key, index) => {
    const row = rowByKey.get(key);
    if (!row) throw new Error(`message ${key} has no content`);
    return {
      ...row,
      claim_token: request.firstToken + index,
      claimed_at_ms: Math.max(nowMs, row.created_at_ms, lastEventAtMs.get(key) ?? 0),
    };
  });
  await tx.updateMany(
    'messages',
    'key',
    ['claim_token', 'claimed_at_ms', 'worker', 'parked'],
    claimed.map((row): SqlValue[] => [row.key, row.claim_token, row.claimed_at_ms, request.worker, 0]),
  );
  const active = codeOfLogState('ACTIVE');
  await logs.append(
    tx,
    claimed.map((row) => ({
      projectId: row.project_id,
      key: row.key,
      events: [[row.claimed_at_ms, active]],
      floorMs: row.claimed_at_ms,
    })),
  );
  return claimed;
}

async function nextDueAtMs(queries: Queries): Promise<number | null> {
  const [row] = await queries.query<{ due_at_ms: number }>(
    'select due_at_ms from messages where claim_token is null and parked = 0 order by due_at_ms, key limit 1',
  );
  return row?.due_at_ms ?? null;
}

/** Origins with parked messages: one step of the index each, however many messages wait there. */
export async function parkedOrigins(queries: Queries): Promise<string[]> {
  const origins: string[] = [];
  let last = '';
  while (true) {
    const [row] = await queries.query<{ origin: string }>(
      'select origin from messages where claim_token is null and parked = 1 and origin > ? order by origin limit 1',
      [last],
    );
    if (!row) return origins;
    origins.push(row.origin);
    last = row.origin;
  }
}
