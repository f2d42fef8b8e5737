/** Implements `waypost/testing`: the production server in the user's test process, on a virtual clock. */
import { Buffer } from 'node:buffer';
import { openSealer } from '../admin/open-store.ts';
import type { Administration } from '../admin/socket/commands.ts';
import { StoredAdministration } from '../admin/socket/stored-administration.ts';
import { parseConfig } from '../config/parse.ts';
import type { Millis } from '../engine/model.ts';
import type { EventLog } from '../engine/ports.ts';
import { toDurationMs } from '../protocol/times/durations.ts';
import { createSystemRandomness, systemClock } from '../system/system.ts';
import { TestProject } from './project.ts';
import type { Fault } from './test-delivery.ts';
import type {
  startWaypost as Declared,
  Disturbance,
  Duration,
  Waypost,
  WaypostOptions,
  WaypostProject,
} from './types.ts';
import {
  prepareVirtualServer,
  startVirtualServer,
  VIRTUAL_TIME_DEFAULTS,
  type VirtualServer,
  type VirtualServerOptions,
} from './virtual-server.ts';

/** Fixed, so that a restarted server can decrypt the signing keys in the store. */
const ENCRYPTION_KEY = Buffer.alloc(32, 7).toString('base64');

const LIMIT = '366d';

export const startWaypost: typeof Declared = async ({ settings = {}, startAt, log } = {}) => {
  const own = ['--memory', '--port', '0', '--encryption-key', ENCRYPTION_KEY];
  const config = parseConfig({ ...VIRTUAL_TIME_DEFAULTS, ...settings }, own, { dev: true });
  const options = await prepareVirtualServer(config, {
    ...{ log: eventLog(log), credentials: 'own', onFatal },
    startMs: startAt?.getTime(),
  });
  const { store } = options;
  try {
    const randomness = createSystemRandomness();
    const sealer = () => openSealer(config, randomness);
    const administration = new StoredAdministration({ store, clock: systemClock, randomness, sealer });
    const access = await createProject(options, administration, 1);
    return new TestServer(options, await startVirtualServer(options), access);
  } catch (error) {
    await store.close();
    throw error;
  }
};

type Access = Omit<ConstructorParameters<typeof TestProject>[0], 'url'>;

class TestServer extends TestProject implements Waypost {
  readonly #options: VirtualServerOptions;
  #running: VirtualServer;
  #projects = 1;

  constructor(options: VirtualServerOptions, running: VirtualServer, access: Access) {
    super({ ...access, url: running.server.url });
    this.#options = options;
    this.#running = running;
  }

  now(): Date {
    return new Date(this.#options.clock.nowMs());
  }

  async advance(duration: Duration): Promise<void> {
    await this.#running.time.advance(durationMs(duration));
  }

  async runUntilIdle({ limit = LIMIT }: { limit?: Duration } = {}): Promise<void> {
    if (await this.#running.time.runUntilIdle(durationMs(limit))) return;
    throw new Error(
      `something still waits after ${limit}: messages() and runs() show what; a higher limit lets it continue`,
    );
  }

  async restart(): Promise<void> {
    await this.#running.server.stop(0);
    const { config } = this.#options;
    this.#running = await startVirtualServer({
      ...this.#options,
      config: { ...config, port: Number(new URL(this.url).port) },
    });
  }

  async project(): Promise<WaypostProject> {
    this.#projects += 1;
    const access = await createProject(this.#options, this.#running.server.administration, this.#projects);
    return new TestProject({ ...access, url: this.url });
  }

  async stop(): Promise<void> {
    await this.#running.server.stop(0);
    await this.#options.store.close();
  }
}

async function createProject(
  { store, faults }: Pick<VirtualServerOptions, 'store' | 'faults'>,
  administration: Administration,
  nth: number,
): Promise<Access> {
  const project = `test-${nth}`;
  const { signingKeys } = await administration.createProject({ name: project });
  const { token } = await administration.createToken({ project, scope: 'full' });
  const projects = await store.projects.listProjects();
  const { projectId = 0 } = projects.find(({ name }) => name === project) ?? {};
  return { token, signingKeys, disturb: (disturbance) => void faults.push({ projectId, ...faultOf(disturbance) }) };
}

function faultOf({ answer, body = '', delay = 0, to = '', times = 1 }: Disturbance): Omit<Fault, 'projectId'> {
  const delayMs = answer === 'lost' ? Number.POSITIVE_INFINITY : durationMs(delay);
  return { to, times, delayMs, ...(typeof answer === 'number' && { response: { status: answer, body } }) };
}

function eventLog(log: WaypostOptions['log']): EventLog {
  return {
    debug: (event, fields = {}) => log?.('debug', event, fields),
    info: (event, fields = {}) => log?.('info', event, fields),
    warn: (event, fields = {}) => log?.('warn', event, fields),
    error: (event, fields = {}) => log?.('error', event, fields),
  };
}

function onFatal(error: Error): never {
  throw error;
}

function durationMs(duration: Duration): Millis {
  const ms = toDurationMs(duration);
  if (ms === undefined) throw new TypeError(`${JSON.stringify(duration)} is no duration, such as "7d" or 500`);
  return ms;
}
