/** Simulates one call of a library that saves its results as checkpoints (contract K). */
import type { Handover } from '../../src/engine/calls/commands.ts';
import type { ClaimToken, MessageId, MessageKey, Millis } from '../../src/engine/model.ts';
import type { HeaderMap } from '../../src/protocol/options/settings.ts';
import { mintCheckpointToken } from '../../src/protocol/workflow/checkpoints.ts';
import type { Attempt, Reply } from '../support/simulated-network.ts';
import { type Checkpoint, type NewEntry, RunIsOver, type WorkflowClient } from './workflow-client.ts';
import { type DeliveredEntry, type Delivery, readEntries } from './workflow-library.ts';
import type { WorkflowNotes } from './workflow-notes.ts';
import { PROJECT, type World } from './world.ts';

/** The body of a failure after which the call continues. */
export const FAILED_WITHIN = Buffer.from('failed within');

/** Thrown when the server responds that the call has lost its messages. */
export class CallLost extends Error {}

/** Thrown when the endpoint crashes in the middle of a call. */
export class EndpointCrashed extends Error {}

export interface OwnedMessage {
  messageId: MessageId;
  key: MessageKey;
  claimToken: ClaimToken;
}

export interface SavedEntry {
  messageId: MessageId;
  owned: OwnedMessage | undefined;
}

interface CallDeps {
  world: World;
  client: WorkflowClient;
  notes: WorkflowNotes;
}

export class EndpointCall {
  /** The return value of the run. */
  result: string | undefined;
  /** The last step, which is not saved yet. */
  lastStep: string | undefined;
  readonly #deps: CallDeps;
  readonly #runId: string;
  readonly #runKey: number;
  readonly #attempt: Readonly<Attempt>;
  readonly #delivery: Delivery;
  #owned: OwnedMessage[];
  /** The entries of the journal that the server has sent. */
  #entries: readonly DeliveredEntry[] = [];

  constructor(deps: CallDeps, attempt: Readonly<Attempt>, delivery: Delivery) {
    const { messageId, claimed } = attempt;
    this.#deps = deps;
    this.#attempt = attempt;
    this.#delivery = delivery;
    this.#runId = delivery.runId;
    const isJournal = !delivery.headers.has('upstash-workflow-callback') && delivery.body.length > 0;
    if (isJournal && claimed.message.settings.run?.callType === 'step') this.#entries = readEntries(delivery.body);
    this.#runKey = claimed.message.settings.run?.key ?? 0;
    this.#owned = [{ messageId, key: claimed.message.key, claimToken: claimed.claimToken }];
  }

  get owned(): readonly OwnedMessage[] {
    return this.#owned;
  }

  /** Throws `CallLost`, `RunIsOver` and `NoResponse`. */
  async append(done: readonly OwnedMessage[], append: readonly NewEntry[]): Promise<SavedEntry[]> {
    return (await this.#send(done, { done, append })).entries;
  }

  /** Like `append`, if no other work is in progress. Resolves to the next message that is due within `lingerMs`. */
  async waitForNext(append: readonly NewEntry[], lingerMs: Millis): Promise<Delivery | undefined> {
    if (this.#owned.length === 0) return undefined;
    const done = this.#owned;
    const { next } = await this.#send(done, { done, append, lingerMs });
    return next && this.#deliveryOf(next);
  }

  /** Reports all owned messages as failed. Resolves to the next message that is due within `lingerMs`. */
  async fail(status: number, header: HeaderMap, lingerMs: Millis): Promise<Delivery | undefined> {
    const outcome = { kind: 'responded', status, header, body: FAILED_WITHIN } as const;
    this.#deps.notes.failedWithin += 1;
    const failed = this.#owned.map(({ key, claimToken }) => ({ key, claimToken, outcome }));
    const { next } = await this.#send(this.#owned, { failed, lingerMs });
    return next && this.#deliveryOf(next);
  }

  /** Keeps a fetched journal if it is longer than the known one. */
  keepJournal(entries: readonly DeliveredEntry[]): void {
    if (entries.length > this.#entries.length) this.#entries = entries;
  }

  async #send(
    named: readonly OwnedMessage[],
    sent: Checkpoint,
  ): Promise<{ entries: SavedEntry[]; next: Handover | undefined }> {
    const { world, client, notes } = this.#deps;
    const { append = [] } = sent;
    const isLate = named.some((each) => this.#isTakenOver(each));
    const { answer, next } = await client.checkpoint(this.#runKey, sent, (handed) =>
      world.noteHandover(this.#attempt, handed),
    );
    if (answer.kind === 'ended') throw new RunIsOver();
    if (answer.kind === 'lost') throw new CallLost();
    // P6: the messages were delivered to another call before this checkpoint was sent.
    if (isLate) world.violate('P6', 'a checkpoint of a call that was given up was saved', named[0]?.messageId);
    const entries = answer.entries.map(({ messageId, claim }) => ({
      messageId,
      owned: claim && { messageId, ...claim },
    }));
    for (const [index, { messageId, owned }] of entries.entries()) {
      const appended = append[index];
      const text = owned && appended?.kind === 'step' ? appended.text : undefined;
      notes.noteSaved({ runId: this.#runId, messageId, text });
    }
    this.#owned = [
      ...this.#owned.filter(({ claimToken }) => !named.some((each) => each.claimToken === claimToken)),
      ...entries.flatMap(({ owned }) => owned ?? []),
      ...(next ? [next] : []),
    ];
    return { entries, next };
  }

  /** Converts a message that was handed to the call into a delivery. */
  #deliveryOf({ messageId, retried, content }: Handover): Delivery {
    const headers = new Map(this.#delivery.headers);
    for (const name of headers.keys())
      if (/^upstash-workflow-(callback|step|concurrent)/.test(name)) headers.delete(name);
    headers.set('upstash-message-id', messageId);
    headers.set('upstash-retried', String(retried));
    const header = content.kind === 'journal' ? undefined : content.header;
    for (const [name, [value = '']] of Object.entries(header ?? {})) headers.set(name.toLowerCase(), value);
    const delivery: Delivery = { ...this.#delivery, headers, messageId, body: new Uint8Array(0) };
    if (content.kind === 'callResult') return { ...delivery, body: content.body };
    if (content.kind === 'nothing') return delivery;
    this.#entries = [...this.#entries, ...readEntries(content.entries)];
    const at = this.#entries.findIndex((entry) => entry.messageId === messageId);
    const entries = this.#entries.slice(0, at + 1);
    this.#deps.notes.handed.push({ delivery, entries });
    return { ...delivery, body: Buffer.from(JSON.stringify(entries)) };
  }

  /** Adds the result of the run to `reply`. */
  endingWith(result: string, reply: Extract<Reply, { kind: 'answer' }>): Reply {
    const last = this.#owned.at(-1);
    if (!last) return reply;
    const claim = { projectId: PROJECT, runKey: this.#runKey, key: last.key, claimToken: last.claimToken, worker: 0 };
    const header = { ...reply.header, 'Upstash-Workflow-End': [mintCheckpointToken(claim, 'simulated')] };
    if (this.lastStep === undefined) return { ...reply, header, body: Buffer.from(result) };
    this.#deps.notes.lastSteps += 1;
    const step = Buffer.from(this.lastStep);
    const ofStep = { 'Upstash-Workflow-End-Step': [String(step.length)] };
    return { ...reply, header: { ...header, ...ofStep }, body: Buffer.concat([step, Buffer.from(result)]) };
  }

  /** Whether the message was attempted under another claim after the claim of this call. */
  #isTakenOver({ messageId, claimToken }: OwnedMessage): boolean {
    const attempts = this.#deps.world.network.attempts.filter((attempt) => attempt.messageId === messageId);
    const own = attempts.findLastIndex((attempt) => attempt.claimToken === claimToken);
    return own < attempts.length - 1;
  }
}
