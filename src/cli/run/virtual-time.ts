/** Runs `waypost dev --virtual-time`: a server with a stopped clock, which requests advance. */
import { type Environment, parseConfig } from '../../config/parse.ts';
import type { Config } from '../../config/table.ts';
import type { startServer } from '../../server/server.ts';
import { HELD_SETTINGS, openGround, startHeld } from '../../testing/held-server.ts';
import { CommandFailed, EXIT } from '../command.ts';

/** Throws `ConfigError`, and `CommandFailed` for more than one worker, whose clocks could not be stopped together. */
export function virtualConfig(env: Environment, args: readonly string[]): Config {
  const inMemory = ['--memory', ...args.filter((arg) => arg !== '--memory')];
  const config = parseConfig({ ...HELD_SETTINGS, ...env }, inMemory, { dev: true });
  if (config.workers === 1) return config;
  throw new CommandFailed('--virtual-time: only a single worker can stop its clock', EXIT.usage);
}

export const startVirtual: typeof startServer = async (config, options) => {
  const ground = await openGround(config, { ...options, isPassedByRequests: true });
  const { server } = await startHeld(ground);
  return {
    ...server,
    // Without draining: nothing is kept, and running attempts may wait for time that nobody advances.
    stop: async () => {
      await server.stop(0);
      await ground.store.close();
    },
  };
};
