/** Runs `waypost dev --virtual-time`: a server with a stopped clock, which requests advance. */
import { type Environment, parseConfig } from '../../config/parse.ts';
import type { Config } from '../../config/table.ts';
import type { startServer } from '../../server/server.ts';
import { prepareVirtualServer, startVirtualServer, VIRTUAL_TIME_DEFAULTS } from '../../testing/virtual-server.ts';
import { CommandFailed, EXIT } from '../command.ts';

/** Throws `ConfigError`, and `CommandFailed` for more than one worker, whose clocks could not be stopped together. */
export function virtualConfig(env: Environment, args: readonly string[]): Config {
  const inMemory = ['--memory', ...args.filter((arg) => arg !== '--memory')];
  const config = parseConfig({ ...VIRTUAL_TIME_DEFAULTS, ...env }, inMemory, { dev: true });
  if (config.workers === 1) return config;
  throw new CommandFailed('--virtual-time: only a single worker can stop its clock', EXIT.usage);
}

export const startVirtual: typeof startServer = async (config, options) => {
  const virtual = await prepareVirtualServer(config, { ...options, isAdvancedByRequests: true });
  const { server } = await startVirtualServer(virtual);
  return {
    ...server,
    // Stops without draining: nothing is kept, and attempts in flight may wait for a clock that nobody advances.
    stop: async () => {
      await server.stop(0);
      await virtual.store.close();
    },
  };
};
