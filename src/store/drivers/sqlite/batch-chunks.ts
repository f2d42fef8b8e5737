/**
 * Splits a batch, so that sending it to the database thread does not block the sender: `postMessage` copies
 * synchronously. So 90 MiB or 10,000 messages are sent ahead in chunks, and a large body is copied in steps and its copy
 * transferred. Other work runs between the chunks and steps. The batch is still one transaction.
 */
import { BATCH_COST_MAX, costOf, costOfMessages } from '../../batches/batch-queue.ts';
import type { WriteCommand } from '../../operations/all.ts';
import type { NewContentRow } from '../../operations/messages/columns.ts';
import type { StoredNewMessage } from '../../operations/messages/rows.ts';

/** A few milliseconds of copying. */
export const CHUNK_COST_MAX = BATCH_COST_MAX / 2;

/** Bytes of a body that are copied in one step. On a busy machine, allocating more memory at once takes milliseconds. */
const STEP_BYTES = 1024 * 1024;

/** Messages of the `accept` command at `index` in the batch that is sent after the chunks. */
export interface MessageChunk {
  kind: 'chunk';
  index: number;
  messages: readonly StoredNewMessage[];
}

/** The batch without the messages that are sent ahead in chunks. Small batches have no chunks. */
export function withoutChunks(commands: readonly WriteCommand[]): readonly WriteCommand[] {
  return commands.map((command) =>
    needsChunks(command) ? { ...command, args: { ...command.args, messages: [] } } : command,
  );
}

/** The sender yields to the event loop after each step. A step without a chunk has only copied a part of a body. */
export interface SendStep {
  chunk?: MessageChunk;
  /** Buffers that only the chunk uses, so they can be transferred. */
  transferred?: ArrayBuffer[];
}

export function* stepsOf(commands: readonly WriteCommand[]): Generator<SendStep> {
  for (const [index, command] of commands.entries()) {
    if (!needsChunks(command)) continue;
    let messages: StoredNewMessage[] = [];
    let cost = 0;
    for (const message of command.args.messages) {
      const messageCost = costOfMessages([message]);
      if (messages.length > 0 && cost + messageCost > CHUNK_COST_MAX) {
        yield { chunk: { kind: 'chunk', index, messages } };
        messages = [];
        cost = 0;
      }
      const body = message.content.at(-1);
      if (messageCost > CHUNK_COST_MAX && body instanceof Uint8Array) {
        yield* stepsOfLargeMessage(index, message, body);
        continue;
      }
      messages.push(message);
      cost += messageCost;
    }
    if (messages.length > 0) yield { chunk: { kind: 'chunk', index, messages } };
  }
}

function* stepsOfLargeMessage(index: number, message: StoredNewMessage, body: Uint8Array): Generator<SendStep> {
  const copy = new Uint8Array(body.byteLength);
  for (let at = 0; at < body.byteLength; at += STEP_BYTES) {
    copy.set(body.subarray(at, at + STEP_BYTES), at);
    yield {};
  }
  const content = message.content.with(-1, copy) as NewContentRow;
  yield { chunk: { kind: 'chunk', index, messages: [{ ...message, content }] }, transferred: [copy.buffer] };
}

function needsChunks(command: WriteCommand): command is Extract<WriteCommand, { method: 'accept' }> {
  return command.method === 'accept' && costOf(command) > CHUNK_COST_MAX;
}

/** Puts the messages of the chunks back into the batch. */
export function joinChunks(batch: readonly WriteCommand[], chunks: readonly MessageChunk[]): readonly WriteCommand[] {
  for (const { index, messages } of chunks) {
    const command = batch[index];
    if (command?.method !== 'accept')
      throw new Error(`a chunk is for command ${index} of its batch, which accepts no messages`);
    for (const message of messages) command.args.messages.push(message);
  }
  return batch;
}
