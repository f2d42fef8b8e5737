/** Reads server-sent events, as the live log sends them: each has a name and one line of JSON. */

export interface ServerEvent {
  name: string;
  data: unknown;
}

/** The events of each piece that comes in; half an event waits for the next piece. */
export async function* readEvents(stream: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent[]> {
  let rest = '';
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    const events = `${rest}${text}`.split('\n\n');
    rest = events.pop() ?? '';
    yield events.flatMap((event) => {
      const name = /^event: (.*)$/m.exec(event)?.[1];
      const data = /^data: (.*)$/m.exec(event)?.[1];
      return name === undefined || data === undefined ? [] : { name, data: JSON.parse(data) as unknown };
    });
  }
}
