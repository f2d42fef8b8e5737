/**
 * How is a batch sent to the database's thread without blocking this one? What is sent is copied at once. So 90 MiB or
 * 10,000 messages are sent ahead in pieces, and other work gets a turn between them. The batch is still one
 * transaction.
 */
import { BATCH_COST_MAX, costOf, costOfMessages } from '../../batches/weight.ts';
import type { WriteCommand } from '../../operations/all.ts';
import type { StoredNewMessage } from '../../operations/messages/rows.ts';

/** A few milliseconds of copying. */
export const PIECE_COST_MAX = BATCH_COST_MAX / 2;

/** Messages of the accept that will be at `index` in the batch that follows. */
export interface Piece {
  kind: 'piece';
  index: number;
  messages: readonly StoredNewMessage[];
}

/** The batch without the messages that are sent ahead in pieces. Small batches have no pieces. */
export function withoutPieces(commands: readonly WriteCommand[]): readonly WriteCommand[] {
  return commands.map((command) =>
    isHeavy(command) ? { ...command, args: { ...command.args, messages: [] } } : command,
  );
}

export function* piecesOf(commands: readonly WriteCommand[]): Generator<Piece> {
  for (const [index, command] of commands.entries()) {
    if (!isHeavy(command)) continue;
    let messages: StoredNewMessage[] = [];
    let cost = 0;
    for (const message of command.args.messages) {
      const more = costOfMessages([message]);
      if (messages.length > 0 && cost + more > PIECE_COST_MAX) {
        yield { kind: 'piece', index, messages };
        messages = [];
        cost = 0;
      }
      messages.push(message);
      cost += more;
    }
    yield { kind: 'piece', index, messages };
  }
}

function isHeavy(command: WriteCommand): command is Extract<WriteCommand, { method: 'accept' }> {
  return command.method === 'accept' && costOf(command) > PIECE_COST_MAX;
}

/** Puts the messages of the pieces back into the batch. */
export function joinPieces(batch: readonly WriteCommand[], pieces: readonly Piece[]): readonly WriteCommand[] {
  for (const { index, messages } of pieces) {
    const command = batch[index];
    if (command?.method !== 'accept')
      throw new Error(`a piece of a batch is for its command ${index}, which takes none`);
    for (const message of messages) command.args.messages.push(message);
  }
  return batch;
}
