/** Several workers on their own PostgreSQL, behind one address. */
import { join } from 'node:path';
import type { ListeningProcess } from '../../../bench/child-process.ts';
import { startWaypost } from '../../../bench/waypost-process.ts';
import { type Examination, examineStore } from '../../../src/admin/examine.ts';
import { parseConfig } from '../../../src/config/parse.ts';
import { type Cluster, startCluster } from '../../support/postgres/cluster.ts';
import type { SeededRandom } from '../../support/seeded-random.ts';
import { untilNoneIsLeft } from '../enough.ts';
import { Balancer } from './balancer.ts';
import type { Servers } from './servers.ts';

const WORKERS = 3;
/** The time until a dead worker expires: short, so that kills can be frequent. */
const FLAGS = ['--worker-timeout', '3s'];

export class PostgresServers implements Servers {
  readonly areDown = false;
  readonly #cluster: Cluster;
  readonly #databaseUrl: string;
  readonly #dataDir: string;
  readonly #balancer: Balancer;
  readonly #random: SeededRandom;
  readonly #workers: ListeningProcess[];

  private constructor(
    parts: { cluster: Cluster; databaseUrl: string; balancer: Balancer; workers: ListeningProcess[] },
    folder: string,
    random: SeededRandom,
  ) {
    this.#cluster = parts.cluster;
    this.#databaseUrl = parts.databaseUrl;
    this.#balancer = parts.balancer;
    this.#workers = parts.workers;
    this.#dataDir = join(folder, 'data');
    this.#random = random;
  }

  static async prepare(folder: string, random: SeededRandom): Promise<PostgresServers> {
    const cluster = await startCluster({ settings: { fsync: 'on' } });
    const databaseUrl = await cluster.createDatabase();
    const workers: ListeningProcess[] = [];
    const balancer = await Balancer.open(() => workers.map(({ url }) => url));
    return new PostgresServers({ cluster, databaseUrl, balancer, workers }, folder, random);
  }

  get url(): string {
    return this.#balancer.url;
  }

  async start(): Promise<void> {
    while (this.#workers.length < WORKERS) {
      const env = { DATABASE_URL: this.#databaseUrl };
      this.#workers.push(await startWaypost({ dataDir: this.#dataDir, flags: FLAGS, env }));
    }
  }

  async kill(): Promise<void> {
    const [worker] = this.#workers.splice(this.#random.int(0, this.#workers.length - 1), 1);
    await worker?.end('SIGKILL');
  }

  async end(): Promise<void> {
    await Promise.all(this.#workers.splice(0).map((worker) => worker.end('SIGTERM')));
  }

  untilEmpty(): Promise<void> {
    const count = 'select (select count(*) from messages) + (select count(*) from runs where state = 1) count';
    const database = new URL(this.#databaseUrl).pathname.slice(1);
    return untilNoneIsLeft(async () => Number((await this.#cluster.query(count, [], database))[0]?.['count']));
  }

  examine(): Promise<Examination> {
    return examineStore(parseConfig({ DATABASE_URL: this.#databaseUrl }, []));
  }

  integrity(): string[] {
    return [];
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.splice(0).map((worker) => worker.end('SIGKILL')));
    this.#balancer.close();
    await this.#cluster.dispose();
  }
}
