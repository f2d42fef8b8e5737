/**
 * Sends a batch to the database's thread without blocking this one. Posting a message copies it at once. So 90 MiB or
 * 10,000 messages are sent ahead in chunks, and a large body is copied in steps and its copy transferred. Other work runs
 * between them. The batch is still one transaction.
 */
import { BATCH_COST_MAX, costOf, costOfMessages } from '../../batches/batch-queue.ts';
import type { WriteCommand } from '../../operations/all.ts';
import type { NewContentRow } from '../../operations/messages/columns.ts';
import type { StoredNewMessage } from '../../operations/messages/rows.ts';

/** A few milliseconds of copying. */
export const CHUNK_COST_MAX = BATCH_COST_MAX / 2;

/** New memory for more takes milliseconds on a busy machine. */
const STEP_BYTES = 1024 * 1024;

/** Messages of the accept that will be at `index` in the batch that follows. */
export interface MessageChunk {
  kind: 'chunk';
  index: number;
  messages: readonly StoredNewMessage[];
}

/** The batch without the messages that are sent ahead in chunks. Small batches have no chunks. */
export function withoutChunks(commands: readonly WriteCommand[]): readonly WriteCommand[] {
  return commands.map((command) =>
    isHeavy(command) ? { ...command, args: { ...command.args, messages: [] } } : command,
  );
}

/** A turn of the event loop is due after each. Without a chunk, only a part of a body was copied. */
export interface Step {
  chunk?: MessageChunk;
  /** Copies that belong to the chunk alone. */
  transferred?: ArrayBuffer[];
}

export function* stepsOf(commands: readonly WriteCommand[]): Generator<Step> {
  for (const [index, command] of commands.entries()) {
    if (!isHeavy(command)) continue;
    let messages: StoredNewMessage[] = [];
    let cost = 0;
    for (const message of command.args.messages) {
      const more = costOfMessages([message]);
      if (messages.length > 0 && cost + more > CHUNK_COST_MAX) {
        yield { chunk: { kind: 'chunk', index, messages } };
        messages = [];
        cost = 0;
      }
      const body = message.content.at(-1);
      if (more > CHUNK_COST_MAX && body instanceof Uint8Array) {
        yield* stepsOfOne(index, message, body);
        continue;
      }
      messages.push(message);
      cost += more;
    }
    if (messages.length > 0) yield { chunk: { kind: 'chunk', index, messages } };
  }
}

function* stepsOfOne(index: number, message: StoredNewMessage, body: Uint8Array): Generator<Step> {
  const copy = new Uint8Array(body.byteLength);
  for (let at = 0; at < body.byteLength; at += STEP_BYTES) {
    copy.set(body.subarray(at, at + STEP_BYTES), at);
    yield {};
  }
  const content = message.content.with(-1, copy) as NewContentRow;
  yield { chunk: { kind: 'chunk', index, messages: [{ ...message, content }] }, transferred: [copy.buffer] };
}

function isHeavy(command: WriteCommand): command is Extract<WriteCommand, { method: 'accept' }> {
  return command.method === 'accept' && costOf(command) > CHUNK_COST_MAX;
}

/** Puts the messages of the chunks back into the batch. */
export function joinChunks(batch: readonly WriteCommand[], chunks: readonly MessageChunk[]): readonly WriteCommand[] {
  for (const { index, messages } of chunks) {
    const command = batch[index];
    if (command?.method !== 'accept')
      throw new Error(`a chunk of a batch is for its command ${index}, which takes none`);
    for (const message of messages) command.args.messages.push(message);
  }
  return batch;
}
