/** Starts a server in the test's own process, with the arguments of the command line. */
import { parseConfig } from '../../src/config/parse.ts';
import type { EventLog } from '../../src/engine/ports.ts';
import { startServer } from '../../src/server/server.ts';

export interface InProcessServer {
  url: string;
  metricsUrl: string | undefined;
  /** The events of the server's log so far. */
  events: { level: string; event: string; [field: string]: unknown }[];
  stop(): Promise<unknown>;
}

/**
 * `args`: `dev` or `serve`, and settings. Listens on a free port. Much faster than a child process; the tests that use
 * test/support/waypost-process.ts prove that child processes behave the same.
 */
export async function serveInProcess(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<InProcessServer> {
  const [command, ...settings] = args;
  const isDev = command === 'dev';
  const events: InProcessServer['events'] = [];
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
