/**
 * How does a batch go to the database's thread without holding this one? What is sent there is copied at once, so that 90 MiB or
 * 10,000 messages go over beforehand in pieces, between which everybody else has a turn. It is one transaction all the same.
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

/** The batch without what goes before it in pieces. Of small ones nothing does. */
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

/** The batch as it was before. */
export function joinPieces(batch: readonly WriteCommand[], pieces: readonly Piece[]): readonly WriteCommand[] {
  for (const { index, messages } of pieces) {
    const command = batch[index];
    if (command?.method !== 'accept')
      throw new Error(`a piece of a batch is for its command ${index}, which takes none`);
    for (const message of messages) command.args.messages.push(message);
  }
  return batch;
}
