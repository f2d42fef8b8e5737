/** How does a test get a development server where no process is needed to prove anything? In its own: starting one takes ten times as long. */
import { parseConfig } from '../../src/config/parse.ts';
import { type RunningServer, startServer } from '../../src/server/server.ts';
import { SILENT } from './silent-log.ts';

/** On a free port of 127.0.0.1, with its store in memory. `flags`: as of `waypost dev`. */
export function startInProcess(...flags: string[]): Promise<RunningServer> {
  return startServer(parseConfig({}, ['--port', '0', '--memory', ...flags], { dev: true }), {
    log: SILENT,
    credentials: 'development',
    onFatal: (error) => {
      throw error;
    },
    isStoreInline: true,
  });
}
