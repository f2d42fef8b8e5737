/** Runs a simulation with several seeds, and collects broken promises and counts for tests. */
import type { SimulationOptions, SimulationReport } from './simulate.ts';

export interface SeedRuns {
  /** For example `1 to 20`. */
  name: string;
  /** Runs the seeds at the first call. */
  results(): Promise<SeedResults>;
}

export interface SeedResults {
  /** Each broken promise, with its seed. */
  broken: string[];
  /** The sums over all seeds. */
  counts: Readonly<Record<string, number>>;
}

interface SeedsOptions {
  first: number;
  count: number;
  steps: number;
  workers?: number;
  cells?: number;
}

export function playSeeds(
  play: (options: SimulationOptions) => Promise<SimulationReport>,
  options: SeedsOptions,
): SeedRuns {
  const { first, count, ...each } = options;
  const playAll = async (): Promise<SeedResults> => {
    const broken: string[] = [];
    const counts: Record<string, number> = {};
    for (let seed = first; seed < first + count; seed += 1) {
      const report = await play({ ...each, seed });
      for (const { promise, text, messageId } of report.violations) {
        broken.push(`seed ${seed}: ${promise}: ${text} ${messageId ?? ''}`);
      }
      for (const [name, sum] of Object.entries(report.counts)) counts[name] = (counts[name] ?? 0) + sum;
    }
    return { broken, counts };
  };
  let played: Promise<SeedResults> | undefined;
  return {
    name: `${first} to ${first + count - 1}`,
    results: () => {
      played ??= playAll();
      return played;
    },
  };
}

/** The names among `wanted` whose counts are 0 for all seeds. Default: among all names. */
export function zeroCounts({ counts }: SeedResults, wanted: readonly string[] = Object.keys(counts)): string[] {
  return wanted.filter((name) => (counts[name] ?? 0) === 0);
}
