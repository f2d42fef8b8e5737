/**
 * Chooses the message that takes over the slot of a settled message, in the same transaction. The chosen message is sent
 * in the same slot of the worker, so it must have the origin of the settled message and must not be much larger.
 */

import { CANDIDATE_FIELDS, type Candidate } from '../claims/claim-round.ts';
import { type ClaimedRow, saveClaims } from '../claims/claimed-rows.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import type { FlowLane } from './flow-lanes.ts';
import type { Released } from './release-next.ts';
import { NOT_ENDING, WAIT_STATE } from './wait-states.ts';

/** A slot that another message may take over. */
export interface FreedSlot {
  projectId: number;
  origin: string;
  bytesMax: number;
  claimToken: number;
  /** The lanes of the message that was settled. */
  queueId: number | null;
  flowKey: string | null;
}

/** The message that takes over each of `freedSlots`, in the same order; undefined for a slot without such a message. */
export async function handOffAll(
  context: WriteContext,
  freedSlots: readonly FreedSlot[],
  released: Released,
  { worker, nowMs }: { worker: string; nowMs: number },
): Promise<(ClaimedRow | undefined)[]> {
  const waitLists = new WaitLists(context, nowMs);
  const nextOfSlots = new Map<FreedSlot, Candidate>();
  const seen = new Set<number>();
  for (const freedSlot of freedSlots) {
    const { projectId, queueId, flowKey } = freedSlot;
    if (released.releasedProjects.has(projectId) || released.gate.capacityOf(projectId) === 0) continue;
    const lane = flowKey === null ? undefined : released.flows.find(projectId, flowKey);
    const inQueue = released.heads.find(
      (head) =>
        head.is_claimable &&
        head.queue_id === queueId &&
        head.flow_key === null &&
        !seen.has(head.key) &&
        fits(head, freedSlot, nowMs),
    );
    const next = inQueue ?? (lane && (await waitLists.firstOf(lane, freedSlot)));
    if (!next) continue;
    seen.add(next.key);
    nextOfSlots.set(freedSlot, next);
    released.gate.start(projectId);
    if (next.flow_key !== null) lane?.start(nowMs);
  }
  const taken = [...nextOfSlots].map(([{ claimToken }, { key, due_at_ms }]) => ({ key, due_at_ms, claimToken }));
  const rowByKey = new Map((await saveClaims(context, taken, worker, nowMs)).map((row) => [row.key, row]));
  return freedSlots.map((freedSlot) => {
    const next = nextOfSlots.get(freedSlot);
    return next && rowByKey.get(next.key);
  });
}

function fits(
  candidate: Pick<Candidate, 'origin' | 'bytes' | 'due_at_ms'>,
  freedSlot: FreedSlot,
  nowMs: number,
): boolean {
  return candidate.origin === freedSlot.origin && candidate.bytes <= freedSlot.bytesMax && candidate.due_at_ms <= nowMs;
}

/** The wait lists of keys, read one message at a time. */
class WaitLists {
  readonly #context: WriteContext;
  readonly #nowMs: number;
  readonly #takenOf = new Map<FlowLane, number>();

  constructor(context: WriteContext, nowMs: number) {
    this.#context = context;
    this.#nowMs = nowMs;
  }

  /** The first due message of the key; undefined if the key has no capacity or the message does not fit the slot. */
  async firstOf(lane: FlowLane, freedSlot: FreedSlot): Promise<Candidate | undefined> {
    if (!lane.hasWaiting(this.#nowMs) || lane.releasesLeft(this.#nowMs) === 0) return undefined;
    const taken = this.#takenOf.get(lane) ?? 0;
    const [first] = await this.#context.tx.query<Candidate>(
      `select ${CANDIDATE_FIELDS} from messages
       where project_id = ? and flow_key = ? and claim_token is null and wait_state = ${WAIT_STATE.flow} and due_at_ms <= ?
         and ${NOT_ENDING}
       order by due_at_ms, key limit 1 offset ? for update skip locked`,
      [lane.row.project_id, lane.row.key, this.#nowMs, taken],
    );
    if (!first || !fits(first, freedSlot, this.#nowMs)) return undefined;
    this.#takenOf.set(lane, taken + 1);
    return first;
  }
}
