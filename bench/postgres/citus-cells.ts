/**
 * Measures the cost of idle cells on Citus: schemas that Citus has placed on its nodes, and one idle worker, connected to the coordinator
 * or to a node.
 */
import { Citus } from '../../test/citus/citus.ts';
import { type IdleFigures, measureIdle, withCellsAt } from '../cells.ts';
import { table } from '../table.ts';

export interface CitusCellsOptions {
  cells: readonly number[];
  idleSeconds: number;
  onFigures?: (figures: CitusCellsFigures) => void;
}

export const DEFAULT_CITUS_CELLS = { cells: [1, 8, 16], idleSeconds: 30 };

export interface CitusCellsFigures extends IdleFigures {
  connectedTo: 'the coordinator' | 'a node';
}

const DATABASE = 'postgres';

/** The CPU time includes all servers; only connections to the worker's server are counted. */
export async function measureCitusCells(options: CitusCellsOptions): Promise<CitusCellsFigures[]> {
  const figures: CitusCellsFigures[] = [];
  for (const cells of options.cells) {
    for (const connectedTo of ['the coordinator', 'a node'] as const) {
      const citus = await Citus.start();
      try {
        await citus.query(`alter database ${DATABASE} set citus.enable_schema_based_sharding = on`);
        const { coordinator, nodes } = citus;
        const [node = coordinator] = nodes;
        const urlAt = (server: typeof node) => `${server.url(DATABASE)}?schema=c1`;
        await withCellsAt(
          {
            databaseUrl: urlAt(coordinator),
            workerUrl: urlAt(connectedTo === 'a node' ? node : coordinator),
            pids: [coordinator, ...nodes].map(({ pid }) => pid),
          },
          { cells, projects: 1 },
          async (started) => {
            for (const state of ['open', 'idle'] as const) {
              const measured = { connectedTo, ...(await measureIdle(started, state, options)) };
              options.onFigures?.(measured);
              figures.push(measured);
            }
          },
        );
      } finally {
        await citus.dispose();
      }
    }
  }
  return figures;
}

export function citusCellsTable(figures: readonly CitusCellsFigures[]): string {
  return table(
    'without load',
    ['', 'Waypost CPU %', 'PostgreSQL %', 'RSS MiB', 'connections'],
    figures.map(({ connectedTo, cells, state, cpuPercent, postgresCpuPercent, residentMiB, connections }) => [
      `${cells} cells, ${state}, worker at ${connectedTo}`,
      ...[cpuPercent, postgresCpuPercent, residentMiB].map((value) => value.toFixed(1)),
      String(connections),
    ]),
  );
}
