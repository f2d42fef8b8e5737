/** Reads server-sent events from the pieces of an answer. Pure. */

export interface StreamEvent {
  event: string;
  data: unknown;
}

/** A comment of the stream, which only says that it still flows, is no event. */
export class EventReader {
  #rest = '';

  /** Returns the events that `piece` completes. */
  read(piece: string): StreamEvent[] {
    const blocks = (this.#rest + piece).split('\n\n');
    this.#rest = blocks.pop() ?? '';
    return blocks.flatMap(eventIn);
  }
}

function eventIn(block: string): StreamEvent[] {
  const fields = new Map(
    block.split('\n').map((line) => {
      const colon = line.indexOf(': ');
      return [line.slice(0, Math.max(0, colon)), line.slice(colon + 2)];
    }),
  );
  const data = fields.get('data');
  return data === undefined ? [] : [{ event: fields.get('event') ?? 'message', data: JSON.parse(data) }];
}
