/** How does a test start a server where no process is needed to prove anything? In its own, as commands are given there. */
import { parseConfig } from '../../src/config/parse.ts';
import type { EventLog } from '../../src/engine/ports.ts';
import { startServer } from '../../src/server/server.ts';

export interface ServerHere {
  url: string;
  metricsUrl: string | undefined;
  /** What its log says so far. */
  events: { level: string; event: string; [field: string]: unknown }[];
  stop(): Promise<unknown>;
}

/**
 * `args`: `dev` or `serve`, and settings, on a free port. For a small part of what a process costs; that processes do the same is
 * seen where test/support/waypost-process.ts starts them.
 */
export async function serveHere(args: readonly string[], env: Record<string, string> = {}): Promise<ServerHere> {
  const [command, ...settings] = args;
  const isDev = command === 'dev';
  const events: ServerHere['events'] = [];
  const note =
    (level: string): EventLog['info'] =>
    (event, fields) =>
      void events.push({ level, event, ...fields });
  const server = await startServer(parseConfig(env, ['--port', '0', ...settings], { dev: isDev }), {
    log: { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') },
    credentials: isDev ? 'development' : 'own',
    onFatal: (error) => {
      throw error;
    },
    isStoreInline: true,
  });
  return { url: server.url, metricsUrl: server.metricsUrl, events, stop: () => server.stop(0) };
}
