/** What `import 'waypost/testing'` gives: the production server in the user's test process, on a held clock. */
import { Buffer } from 'node:buffer';
import { parseConfig } from '../config/parse.ts';
import type { Config } from '../config/table.ts';
import type { Millis } from '../engine/model.ts';
import type { EventLog } from '../engine/ports.ts';
import { type OpenedStore, openSealer, openStore } from '../operations/open-store.ts';
import type { Administration } from '../operations/socket/commands.ts';
import { StoredAdministration } from '../operations/socket/stored.ts';
import { parseDurationMs } from '../protocol/durations.ts';
import { type RunningServer, startServer } from '../server/server.ts';
import { createSystemRandomness, endOfTurn, systemClock } from '../system/system.ts';
import { Attempts, type Fault } from './attempts.ts';
import { HeldClock } from './held-clock.ts';
import { Passage } from './passage.ts';
import { TestProject } from './project.ts';
import type {
  startWaypost as Declared,
  Disturbance,
  Duration,
  Waypost,
  WaypostOptions,
  WaypostProject,
} from './types.ts';

/** Servers that are started again must be able to read the signing keys that the store has. */
const ENCRYPTION_KEY = Buffer.alloc(32, 7).toString('base64');

/** A round of dropping each minute would be most of what happens in a year. */
const SETTINGS = { WAYPOST_RETENTION_INTERVAL: '1d' };

const LIMIT = '366d';

/** What a server needs, and keeps when it is started again. */
interface Ground {
  config: Config;
  clock: HeldClock;
  store: OpenedStore;
  log: EventLog;
  faults: Fault[];
}

/** A server that runs, and the attempts that it makes. */
interface Running {
  server: RunningServer;
  attempts: Attempts;
}

export const startWaypost: typeof Declared = async ({ settings = {}, startAt, log } = {}) => {
  const own = ['--memory', '--port', '0', '--encryption-key', ENCRYPTION_KEY];
  const config = parseConfig({ ...SETTINGS, ...settings }, own, { dev: true });
  const clock = new HeldClock(startAt?.getTime());
  const store = await openStore(config, { onFatal, create: true, isInline: true });
  const ground: Ground = { config, clock, store, log: eventLog(log), faults: [] };
  try {
    const randomness = createSystemRandomness();
    const sealer = () => openSealer(config, randomness, { create: true });
    const administration = new StoredAdministration({ store, clock: systemClock, randomness, sealer });
    const access = await createProject(administration, 1);
    const running = await startOn(ground, config.port);
    return new TestServer(ground, running, access);
  } catch (error) {
    await store.close();
    throw error;
  }
};

type Access = Omit<ConstructorParameters<typeof TestProject>[0], 'url'>;

class TestServer extends TestProject implements Waypost {
  readonly #ground: Ground;
  readonly #passage: Passage;
  #running: Running;
  #projects = 1;

  constructor(ground: Ground, running: Running, access: Access) {
    super({ ...access, url: running.server.url });
    this.#ground = ground;
    this.#running = running;
    this.#passage = new Passage(ground.clock, () => this.#underWay());
  }

  now(): Date {
    return new Date(this.#ground.clock.nowMs());
  }

  async advance(duration: Duration): Promise<void> {
    await this.#passage.to(this.#ground.clock.nowMs() + millis(duration));
  }

  async runUntilIdle({ limit = LIMIT }: { limit?: Duration } = {}): Promise<void> {
    const untilMs = this.#ground.clock.nowMs() + millis(limit);
    if (await this.#passage.toEndOfWork(untilMs)) return;
    throw new Error(
      `something still waits after ${limit}: messages() and runs() show what; a higher limit lets it go on`,
    );
  }

  disturb({ answer, body = '', delay = 0, to = '', times = 1 }: Disturbance): void {
    const lateMs = answer === 'lost' ? Number.POSITIVE_INFINITY : millis(delay);
    const status = typeof answer === 'number' ? { answer: { status: answer, body } } : {};
    this.#ground.faults.push({ to, times, lateMs, ...status });
  }

  async restart(): Promise<void> {
    await this.#running.server.stop(0);
    this.#running = await startOn(this.#ground, Number(new URL(this.url).port));
  }

  async project(): Promise<WaypostProject> {
    this.#projects += 1;
    const access = await createProject(this.#running.server.administration, this.#projects);
    return new TestProject({ ...access, url: this.url });
  }

  async stop(): Promise<void> {
    await this.#running.server.stop(0);
    await this.#ground.store.close();
  }

  /** An attempt, or what waits to be saved: that takes turns of the event loop only. */
  #underWay(): Promise<unknown> | undefined {
    const { attempts } = this.#running;
    if (attempts.underWay > 0) return attempts.nextEnd;
    return (this.#ground.store.stats?.().waiting ?? 0) > 0 ? endOfTurn() : undefined;
  }
}

async function startOn({ config, clock, store, log, faults }: Ground, port: number): Promise<Running> {
  let attempts: Attempts | undefined;
  const server = await startServer(
    { ...config, port },
    {
      log,
      credentials: 'own',
      onFatal,
      clock,
      store,
      around: {
        signatureClock: systemClock,
        wrap: (delivery) => {
          attempts = new Attempts(delivery, { clock, timeoutMsMax: config.timeoutMaxMs, faults });
          return attempts;
        },
      },
    },
  );
  if (attempts === undefined) throw new Error('the server makes no attempts');
  return { server, attempts };
}

async function createProject(administration: Administration, nth: number): Promise<Access> {
  const project = `test-${nth}`;
  const { signingKeys } = await administration.createProject({ name: project });
  const { token } = await administration.createToken({ project, scope: 'full' });
  return { token, signingKeys };
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

function millis(duration: Duration): Millis {
  const ms = typeof duration === 'number' ? duration : parseDurationMs(duration);
  if (ms === undefined || !(ms >= 0))
    throw new TypeError(`${JSON.stringify(duration)} is no duration, such as "7d" or 500`);
  return ms;
}
