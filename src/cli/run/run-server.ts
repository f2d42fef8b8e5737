/** Runs a server in this process: starts it, announces it, drains it at a signal, and returns the exit code. */
import type { Credentials } from '../../accounts/open-accounts.ts';
import { docsLink } from '../../config/docs-link.ts';
import type { Config } from '../../config/table.ts';
import { unknownVariables } from '../../config/unknown-variables.ts';
import type { EventLog } from '../../engine/ports.ts';
import { type RunningServer, startServer } from '../../server/server.ts';
import { ThreadEnded } from '../../server/threads/worker-thread.ts';
import { startIdleCollection } from '../../system/memory.ts';
import { readVersion } from '../../system/version.ts';
import { createEventLog } from '../../telemetry/event-log.ts';
import { EXIT, type Terminal } from '../command.ts';
import { nodeWarning } from '../node-version.ts';
import { exitCodeOf, nextSignal, type Signal } from '../signal.ts';

interface RunOptions {
  credentials: Credentials;
  /** The first SIGTERM or SIGINT, which may arrive before the server has started. */
  stopSignal: Promise<Signal>;
  /** The text for people once the server listens. JSON logs have the event `listening` instead. */
  announce?: (server: RunningServer) => string;
  /** Default: `startServer`. */
  start?: typeof startServer;
}

/** Resolves to the exit code once the server has ended. */
export async function runServer(config: Config, terminal: Terminal, options: RunOptions): Promise<number> {
  const isReadByPeople = terminal.isInteractive || options.announce !== undefined;
  const format = config.logFormat === 'auto' ? (isReadByPeople ? 'pretty' : 'json') : config.logFormat;
  const log = createEventLog({ format, level: config.logLevel, color: terminal.color, write: terminal.print });
  for (const { name, suggestion } of unknownVariables(terminal.env)) {
    log.warn('setting_unknown', {
      setting: name,
      reason: suggestion
        ? `did you mean ${suggestion}?`
        : `no setting has this name; ${docsLink(config.docsUrl, 'settings')} lists all`,
    });
  }
  // An uncaught error is a defect: end the process, and let the next start recover from the data on disk.
  process.once('uncaughtException', (error) => exitFatally(log, 'defect', error));
  const onFatal = (error: Error): void =>
    exitFatally(log, error instanceof ThreadEnded ? 'worker_ended' : 'store_failed', error);
  const { credentials, stopSignal, start = startServer } = options;
  let hasStarted = false;
  void stopSignal.then((signal) => {
    if (!hasStarted) exitWithoutDraining(log, signal);
  });
  const server = await start(config, { log, credentials, onFatal });
  hasStarted = true;
  startIdleCollection();
  // In development, endpoints are the user's own and exploit no vulnerability of Node, so there is no warning.
  const warning = credentials === 'own' ? nodeWarning(process.versions.node) : undefined;
  if (warning !== undefined) log.warn('node_outdated', { reason: warning });
  if (format === 'pretty' && options.announce) terminal.print(options.announce(server));
  const workers = config.workers > 1 ? { workers: config.workers } : {};
  const metrics = server.metricsUrl === undefined ? {} : { metrics: server.metricsUrl };
  log.info('listening', { url: server.url, pid: process.pid, version: readVersion(), ...workers, ...metrics });
  return drain(await stopSignal, { server, log, limitMs: config.drainLimitMs });
}

/**
 * Exits at once, since the store or the process cannot be trusted any more: later responses and log lines might be wrong.
 */
function exitFatally(log: EventLog, event: 'store_failed' | 'worker_ended' | 'defect', error: Error): void {
  log.error(event, { error: error.stack ?? error.message });
  process.exit(EXIT.fatal);
}

/** Exits without draining. The next start recovers interrupted attempts. */
function exitWithoutDraining(log: EventLog, signal: Signal): void {
  log.warn('stopped_at_once', { signal });
  process.exit(exitCodeOf(signal));
}

interface DrainOptions {
  server: RunningServer;
  log: EventLog;
  limitMs: number;
}

/** A second signal ends the process at once, as does a first signal before the server has started. */
async function drain(signal: Signal, { server, log, limitMs }: DrainOptions): Promise<number> {
  void nextSignal().then((second) => exitWithoutDraining(log, second));
  log.info('draining', { signal, limitMs });
  await server.stop(limitMs);
  log.info('stopped');
  return EXIT.ok;
}
