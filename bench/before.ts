/** Compares this checkout with another one, such as the previous commit, in alternating bursts. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { alternateBursts, type Burst, medianRatio, missingOf } from './bursts.ts';
import type { ListeningProcess } from './child-process.ts';
import type { Figure } from './figure.ts';
import { freshDatabase, startDatabaseServer } from './postgres/database.ts';
import { median } from './statistics.ts';
import { startWaypost } from './waypost-process.ts';

export interface BeforeOptions {
  /** The folder of the other checkout, with its dependencies installed. */
  program: string;
  isPostgres: boolean;
  /** In half of the rounds the server of this checkout is started first, in the other half the server of `program`. */
  rounds: number;
  /** Messages per burst. */
  messages: number;
  warmUpMessages: number;
  onRound?: (figure: Figure) => void;
}

export const DEFAULT_BEFORE = { rounds: 30, messages: 3_000, warmUpMessages: 10_000 };

/** The time after a burst for its last messages to be settled. */
const AFTER_BURST_MS = 100;

export async function measureBefore({ program, isPostgres, onRound, ...options }: BeforeOptions): Promise<Figure[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-bench-'));
  const database = isPostgres ? await startDatabaseServer() : undefined;
  let servers: ListeningProcess[] = [];
  const start = async (isCurrent: boolean): Promise<ListeningProcess> => {
    const url = database && (await freshDatabase(database)).url;
    const env = url && { DATABASE_URL: url, WAYPOST_ENCRYPTION_KEY: randomBytes(32).toString('base64') };
    const server = await startWaypost({
      dataDir: mkdtempSync(join(dataDir, 'server-')),
      ...(env && { env }),
      ...(!isCurrent && { program }),
    });
    servers.push(server);
    return server;
  };
  const endAll = async (): Promise<void> => {
    for (const server of servers) await server.end('SIGTERM');
    servers = [];
  };
  const bursts: [Burst[], Burst[]] = [[], []];
  try {
    // With two servers of the same program, the one started first used up to 10 % more CPU.
    for (const isCurrentFirst of [true, false]) {
      const first = await start(isCurrentFirst);
      const second = await start(!isCurrentFirst);
      const half = await alternateBursts(isCurrentFirst ? [first, second] : [second, first], {
        ...{ ...options, rounds: Math.ceil(options.rounds / 2), afterMs: AFTER_BURST_MS },
        onRound: (current, before) => onRound?.(cpuOf([current], [before], options.messages)),
      });
      for (const at of [0, 1] as const) bursts[at].push(...half[at]);
      await endAll();
    }
  } finally {
    await endAll();
    await database?.dispose();
    rmSync(dataDir, { recursive: true, force: true });
  }
  const [current, before] = bursts;
  const rate = (all: readonly Burst[]) => median(all.map(({ perSecond }) => perSecond));
  return [
    cpuOf(current, before, options.messages),
    { name: 'CPU, median ratio of the rounds', value: 100 * medianRatio(bursts, 'cpu'), unit: '%' },
    {
      ...{ name: 'delivery rate of a burst', value: rate(current), unit: 'messages/s' },
      reference: { name: 'before', value: rate(before) },
    },
    { name: 'rate, median ratio of the rounds', value: 100 * medianRatio(bursts, 'perSecond'), unit: '%' },
    { name: 'messages missing', value: missingOf(bursts), unit: 'messages' },
  ];
}

function cpuOf(current: readonly Burst[], before: readonly Burst[], messages: number): Figure {
  const cpu = (all: readonly Burst[]) => (median(all.map((burst) => burst.cpu)) / messages) * 1_000;
  return {
    ...{ name: 'CPU for 1,000 messages', value: cpu(current), unit: 's' },
    reference: { name: 'before', value: cpu(before) },
  };
}
