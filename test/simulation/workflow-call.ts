/** How a library keeps results within one call: what it has sent and was answered (contract K). */
import type { Claimed, ClaimToken, MessageId, MessageKey } from '../../src/engine/model.ts';
import { mintCheckpointToken } from '../../src/protocol/workflow/checkpoints.ts';
import type { Reply } from '../support/simulated-network.ts';
import { type Appended, RunIsOver, type WorkflowClient } from './workflow-client.ts';
import type { WorkflowNotes } from './workflow-notes.ts';
import { PROJECT, type World } from './world.ts';

/** The server says that the call is given up. */
export class Lost extends Error {}

/** The endpoint ends in the middle of a call. */
export class EndpointCrashed extends Error {}

export interface HeldByEndpoint {
  messageId: MessageId;
  key: MessageKey;
  claimToken: ClaimToken;
}

export interface AnsweredEntry {
  messageId: MessageId;
  held: HeldByEndpoint | undefined;
}

interface CallDeps {
  world: World;
  client: WorkflowClient;
  notes: WorkflowNotes;
}

export class EndpointCall {
  /** What the run has returned. */
  result: string | undefined;
  readonly #deps: CallDeps;
  readonly #runId: string;
  readonly #runKey: number;
  #held: HeldByEndpoint[];

  constructor(deps: CallDeps, delivered: { runId: string; messageId: MessageId; claimed: Claimed }) {
    const { runId, messageId, claimed } = delivered;
    this.#deps = deps;
    this.#runId = runId;
    this.#runKey = claimed.message.settings.run?.key ?? 0;
    this.#held = [{ messageId, key: claimed.message.key, claimToken: claimed.claimToken }];
  }

  get held(): readonly HeldByEndpoint[] {
    return this.#held;
  }

  /** Throws `Lost`, `RunIsOver` and `NoAnswer`. */
  async append(done: readonly HeldByEndpoint[], append: readonly Appended[]): Promise<AnsweredEntry[]> {
    const { world, client, notes } = this.#deps;
    const isLate = done.some((each) => this.#isTakenOver(each));
    const answer = await client.checkpoint(this.#runKey, done, append);
    if (answer.kind === 'ended') throw new RunIsOver();
    if (answer.kind === 'lost') throw new Lost();
    // P6: somebody else was called with what is done, before this was sent.
    if (isLate) world.violate('P6', 'a checkpoint of a call that was given up was saved', done[0]?.messageId);
    const entries = answer.entries.map(({ messageId, held }) => ({ messageId, held: held && { messageId, ...held } }));
    for (const [index, { messageId, held }] of entries.entries()) {
      const appended = append[index];
      const text = held && appended?.kind === 'step' ? appended.text : undefined;
      notes.keep({ runId: this.#runId, messageId, text });
    }
    this.#held = [
      ...this.#held.filter(({ key }) => !done.some((each) => each.key === key)),
      ...entries.flatMap(({ held }) => held ?? []),
    ];
    return entries;
  }

  /** `reply` with the result of the run. */
  endingWith(result: string, reply: Extract<Reply, { kind: 'answer' }>): Reply {
    const last = this.#held.at(-1);
    if (!last) return reply;
    const claim = { projectId: PROJECT, runKey: this.#runKey, key: last.key, claimToken: last.claimToken, worker: 0 };
    const header = { ...reply.header, 'Upstash-Workflow-End': [mintCheckpointToken(claim, 'simulated')] };
    return { ...reply, header, body: Buffer.from(result) };
  }

  /** Whether an attempt was made with the message under another claim, after its own one if it had one. */
  #isTakenOver({ messageId, claimToken }: HeldByEndpoint): boolean {
    const attempts = this.#deps.world.network.attempts.filter((attempt) => attempt.messageId === messageId);
    const own = attempts.findLastIndex((attempt) => attempt.claimToken === claimToken);
    return own < attempts.length - 1;
  }
}
