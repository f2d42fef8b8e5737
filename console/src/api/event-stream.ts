/** Parses server-sent events from the chunks of a response. Pure. */

export interface StreamEvent {
  event: string;
  data: unknown;
}

/** Comments, which only keep the stream alive, are skipped. */
export class EventReader {
  #rest = '';

  /** Returns the events that `chunk` completes. */
  read(chunk: string): StreamEvent[] {
    const blocks = (this.#rest + chunk).split('\n\n');
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
