/**
 * The process of a reader, which runs examples one after another, so that the libraries are loaded once. After the message
 * that there are no more, it ends by itself unless an example keeps something open.
 */
import type { Server } from 'node:http';
import { format } from 'node:util';

/** An example to run; an app listens on, and exports its server as `listening`, until it is told to close. */
export type Task = { file: string } | 'close app';

export interface Done {
  /** What it printed, by line. */
  printed: string[];
  /** Of an app. */
  port?: number;
  error?: string;
}

let app: Server | undefined;

process.on('message', async (task: Task) => {
  const done = task === 'close app' ? await closeApp() : await run(task.file);
  process.send?.(done);
});

async function run(file: string): Promise<Done> {
  const texts: string[] = [];
  console.log = (...values) => void texts.push(format(...values));
  try {
    const { listening } = (await import(file)) as { listening?: Server };
    app = listening ?? app;
    const address = listening?.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    return { printed: texts.join('\n').split('\n'), ...(port !== undefined && { port }) };
  } catch (error) {
    return { printed: [], error: format(error) };
  }
}

async function closeApp(): Promise<Done> {
  const closed = new Promise((resolve) => app?.close(resolve));
  app?.closeAllConnections();
  await closed;
  return { printed: [] };
}
