/** Parses the server-sent events of the live log: each has a name and one line of JSON. */
import { CommandFailed, EXIT } from '../command.ts';

export interface ServerEvent {
  name: string;
  id?: string | undefined;
  data: unknown;
}

/**
 * Yields the events of each received chunk. A partial event is completed with the next chunk. Throws `CommandFailed` when
 * the connection breaks.
 */
export async function* readEvents(stream: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent[]> {
  let rest = '';
  try {
    for await (const text of stream.pipeThrough(new TextDecoderStream())) {
      const events = `${rest}${text}`.split('\n\n');
      rest = events.pop() ?? '';
      yield events.flatMap((event) => {
        const name = /^event: (.*)$/m.exec(event)?.[1];
        const data = /^data: (.*)$/m.exec(event)?.[1];
        if (name === undefined || data === undefined) return [];
        return { name, id: /^id: (.*)$/m.exec(event)?.[1], data: JSON.parse(data) as unknown };
      });
    }
  } catch (error) {
    const { cause = error } = error as Error;
    throw new CommandFailed(`the connection broke: ${(cause as Error).message}`, EXIT.unavailable);
  }
}
