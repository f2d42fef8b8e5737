/** Starts a real Citus: a coordinator and two nodes, each its own PostgreSQL on this machine. */
import { openPostgresStore } from '../../src/store/drivers/postgres/open.ts';
import { systemClock } from '../../src/system/system.ts';
import { type Cluster, type Row, startCluster } from '../support/postgres/cluster.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

/** The installation of PostgreSQL with Citus that the tests are given: the folder that holds `bin`. No package has one. */
export function installationOfCitus(): string {
  const folder = process.env['CITUS_FOLDER'];
  if (folder === undefined) throw new Error('CITUS_FOLDER names no installation of PostgreSQL with Citus');
  return folder;
}

const SETTINGS = {
  shared_preload_libraries: 'citus',
  wal_level: 'logical', // for moves of a schema while it is in use
  max_prepared_transactions: '50',
  'citus.node_conninfo': 'sslmode=disable',
  'citus.local_hostname': '127.0.0.1',
  'citus.enable_statistics_collection': 'off',
};

export interface CitusOptions {
  /** Of each server. */
  settings?: Readonly<Record<string, string>>;
  /** True: the servers reach each node through a link that can be cut. */
  hasLinks?: boolean;
}

interface Node {
  server: Cluster;
  link: TcpProxy | undefined;
}

export class Citus {
  readonly coordinator: Cluster;
  readonly #nodes: readonly Node[];

  private constructor(coordinator: Cluster, nodes: readonly Node[]) {
    this.coordinator = coordinator;
    this.#nodes = nodes;
  }

  /** Resolves when the coordinator knows both nodes. */
  static async start({ settings = {}, hasLinks = false }: CitusOptions = {}): Promise<Citus> {
    const options = { binaries: installationOfCitus(), settings: { ...SETTINGS, ...settings } };
    const started = await Promise.allSettled([startCluster(options), startCluster(options), startCluster(options)]);
    const clusters = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    try {
      for (const one of started) if (one.status === 'rejected') throw one.reason;
      const [coordinator, ...servers] = clusters as [Cluster, ...Cluster[]];
      const linked = servers.map(async (server) => ({
        server,
        link: hasLinks ? await TcpProxy.open(server.port) : undefined,
      }));
      const citus = new Citus(coordinator, await Promise.all(linked));
      await citus.#connect();
      return citus;
    } catch (error) {
      await Promise.all(clusters.map((cluster) => cluster.dispose()));
      throw error;
    }
  }

  async #connect(): Promise<void> {
    await Promise.all([this.coordinator, ...this.nodes].map((server) => server.query('create extension citus')));
    await this.query('select citus_set_coordinator_host($1, $2)', ['127.0.0.1', this.coordinator.port]);
    for (const node of this.#nodes) await this.query('select citus_add_node($1, $2)', ['127.0.0.1', portOf(node)]);
  }

  get nodes(): Cluster[] {
    return this.#nodes.map(({ server }) => server);
  }

  /** A new schema, whose tables Citus keeps together on one node. */
  async makeSchema(name: string): Promise<void> {
    await this.query(`set citus.enable_schema_based_sharding = on; create schema "${name}"`);
  }

  /** The URL of the store in a schema, through the coordinator or a node; also for clients that know of no `schema`. */
  url(schema: string, through: Cluster = this.coordinator): string {
    return `${through.url()}?schema=${schema}&options=${encodeURIComponent(`-c search_path=${schema}`)}`;
  }

  /** The node on which the tables of a schema are now. */
  async placeOf(schema: string): Promise<Cluster> {
    return (await this.#findNode(schema)).server;
  }

  /** What lies between the servers and the node on which the tables of a schema are now. */
  async linkTo(schema: string): Promise<TcpProxy> {
    const { link } = await this.#findNode(schema);
    if (!link) throw new Error('this Citus has no links');
    return link;
  }

  async #findNode(schema: string): Promise<Node> {
    const [row] = await this.query(
      `select distinct nodeport from citus_shards where table_name::text like $1 || '.%'`,
      [schema],
    );
    const found = this.#nodes.find((node) => portOf(node) === Number(row?.['nodeport']));
    if (!found) throw new Error(`no node has the schema ${schema}`);
    return found;
  }

  /** Citus moves a schema to the other node, while it is in use, or while all writes wait. Answers to which. */
  async move(schema: string, mode: 'auto' | 'block_writes' = 'auto'): Promise<Cluster> {
    const place = await this.#findNode(schema);
    const target = this.#nodes.find((node) => node !== place);
    if (!target) throw new Error('there is no other node');
    await this.query('select citus_schema_move($1::regnamespace, $2::text, $3::int, $4)', [
      schema,
      '127.0.0.1',
      portOf(target),
      mode,
    ]);
    return target.server;
  }

  /** Citus moves all that is on the node of a schema away, by a job of its own, so that the node could go. It may be used again afterwards. */
  async drain(schema: string): Promise<void> {
    const node = portOf(await this.#findNode(schema));
    const use = 'select citus_set_node_property($1, $2, $3, $4)';
    await this.query(use, ['127.0.0.1', node, 'shouldhaveshards', false]);
    await this.query('select citus_rebalance_start(drain_only => true)');
    await this.query('select citus_rebalance_wait()');
    if (portOf(await this.#findNode(schema)) === node) throw new Error('the node still has the schema');
    await this.query(use, ['127.0.0.1', node, 'shouldhaveshards', true]);
  }

  /** On the coordinator. */
  query(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return this.coordinator.query(text, values);
  }

  async dispose(): Promise<void> {
    await Promise.all(this.#nodes.map(({ link }) => link?.close()));
    await Promise.all([this.coordinator, ...this.nodes].map((server) => server.dispose()));
  }
}

function portOf({ server, link }: Node): number {
  return link?.port ?? server.port;
}

/** A schema with the tables of a store, and nothing in them. */
export async function makeStore(citus: Citus, schema: string): Promise<string> {
  await citus.makeSchema(schema);
  const url = citus.url(schema);
  const store = await openPostgresStore({ url, listenUrl: '', clock: systemClock, sender: schema, onFatal: () => {} });
  await store.close();
  return url;
}
