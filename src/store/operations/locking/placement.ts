/**
 * Checks that the projects to which a batch writes are placed in this cell.
 *
 * A cell has a row in `projects` for each project that lives in the cell, with the project's `placement`. With several
 * cells, each batch locks (for share) the rows of the projects to which it writes and that are placed here. The batch
 * does not wait for the response to this statement until the end of the batch, so the check costs no round trip. A change
 * of `placement` then takes the row's exclusive lock (`awaitBatches`), which waits for the batches that saw the former
 * value. Share locks exclude neither each other nor the lock of lanes (locks.ts). All of these are row locks, because
 * Citus does not pass advisory locks to its nodes.
 *
 * Background work, such as a claim, skips projects that are being moved, and its choice is checked like any other write.
 * Reads of a project read its placement in the same snapshot: otherwise a worker that was not notified of a move would
 * return incomplete data.
 */
import type { ProjectId } from '../../../engine/model.ts';
import type { Queries, Transaction } from '../../driver.ts';

/** The numbers are stored: never change one, only add. Statements contain them as literals. */
export const PLACEMENT = {
  here: 0,
  /** A move is copying the project to this cell. */
  arriving: 1,
  /** A move copies the last changes out of this cell. */
  leaving: 2,
  /** The project lives in another cell, and its rows here are being deleted. */
  gone: 3,
  /**
   * The project lives in another cell, and has no other rows here. This row stays, so that the project is not taken for a
   * new one.
   */
  elsewhere: 4,
} as const;

export type Placement = keyof typeof PLACEMENT;

/** Projects that may have some of their rows here, but must not be written to; the condition of a partial index. */
const IS_MOVING = `placement in (${PLACEMENT.arriving}, ${PLACEMENT.leaving}, ${PLACEMENT.gone})`;

/** The command has changed nothing, because its project is not here. */
export interface AwayResult {
  kind: 'away';
  projectId: ProjectId;
  /** Whether the project already lives in another cell; otherwise it is being moved. */
  isGone: boolean;
}

/** Another transaction has locked the project's row, and this transaction did not wait for the lock. */
interface BlockedResult {
  kind: 'blocked';
  projectId: ProjectId;
}

/** The requirements of a batch on the placement of projects. */
export interface PlacementCheck {
  /** Projects that background work skips, because they are being moved. */
  moving(): Promise<ReadonlySet<ProjectId>>;
  /** Requires that these projects are here: the store has chosen to write to them, for example by a claim. */
  require(projects: Iterable<ProjectId>): void;
  /** Requires that the projects to which these commands write are here. */
  requireFor(commands: Iterable<readonly [command: object, projects: Iterable<ProjectId>]>): void;
}

/** For a store that is the only cell: all projects are here. */
export const ALL_HERE: PlacementCheck = { moving: async () => NONE, require: () => {}, requireFor: () => {} };

const NONE: ReadonlySet<ProjectId> = new Set();

/** The batch wrote to projects that are not here or are blocked. It is rolled back, and repeated without `refused`. */
export class ProjectsNotHere extends Error {
  readonly projects: ReadonlySet<ProjectId>;
  /** The commands that named such a project. */
  readonly refused: ReadonlyMap<object, AwayResult | BlockedResult>;

  constructor(projects: ReadonlySet<ProjectId>, refused: ReadonlyMap<object, AwayResult | BlockedResult>) {
    super('a project is not here');
    this.name = 'NotHere';
    this.projects = projects;
    this.refused = refused;
  }
}

/** The placement check of one batch. */
export class BatchPlacementCheck implements PlacementCheck {
  readonly #tx: Transaction;
  readonly #avoid: ReadonlySet<ProjectId>;
  readonly #locking: string;
  readonly #commands = new Map<ProjectId, object[]>();
  readonly #here: Promise<{ id: ProjectId }[]>[] = [];
  #moving: Promise<ReadonlySet<ProjectId>> | undefined;

  /** Also skips the projects `avoid`. With `waitsForLocks`, waits for projects that another transaction has locked. */
  constructor(tx: Transaction, { avoid, waitsForLocks }: { avoid: ReadonlySet<ProjectId>; waitsForLocks: boolean }) {
    this.#tx = tx;
    this.#avoid = avoid;
    this.#locking = waitsForLocks ? 'for key share' : 'for key share skip locked';
  }

  moving(): Promise<ReadonlySet<ProjectId>> {
    this.#moving ??= projectsMoving(this.#tx).then((ids) => new Set([...ids, ...this.#avoid]));
    return this.#moving;
  }

  require(projects: Iterable<ProjectId>): void {
    const added = new Set([...projects].filter((id) => !this.#commands.has(id)));
    for (const id of added) this.#commands.set(id, []);
    if (added.size > 0) this.#lockHere([...added]);
  }

  requireFor(commands: Iterable<readonly [command: object, projects: Iterable<ProjectId>]>): void {
    const added = new Map<ProjectId, object[]>();
    for (const [command, projects] of commands) {
      for (const id of projects) {
        const others = added.get(id);
        if (others === undefined) added.set(id, [command]);
        else if (others.at(-1) !== command) others.push(command);
      }
    }
    this.require(added.keys());
    for (const [id, ofProject] of added) this.#commands.set(id, ofProject);
  }

  #lockHere(projects: readonly ProjectId[]): void {
    const here = this.#tx.query<{ id: ProjectId }>(
      `select id from projects where id in (??) and placement = ${PLACEMENT.here} order by id ${this.#locking}`,
      [projects],
    );
    here.catch(() => {}); // the later statements of the transaction fail too, and report the error
    this.#here.push(here);
  }

  /** Throws `ProjectsNotHere` unless all required projects are here. None can leave before the transaction ends. */
  async check(): Promise<void> {
    const here = new Set((await Promise.all(this.#here)).flat().map(({ id }) => id));
    const missing = [...this.#commands.keys()].filter((id) => !here.has(id));
    if (missing.length === 0) return;
    const rows = await this.#tx.query<{ id: ProjectId; placement: number }>(
      'select id, placement from projects where id in (??)',
      [missing],
    );
    const placements = new Map(rows.map(({ id, placement }) => [id, placement]));
    const refused = missing.flatMap((id) => {
      const result = reasonNotHere(id, placements.get(id));
      return (this.#commands.get(id) ?? []).map((command): [object, AwayResult | BlockedResult] => [command, result]);
    });
    throw new ProjectsNotHere(new Set(missing), new Map(refused));
  }
}

function reasonNotHere(projectId: ProjectId, placement: number = PLACEMENT.elsewhere): AwayResult | BlockedResult {
  if (placement === PLACEMENT.here) return { kind: 'blocked', projectId };
  return { kind: 'away', projectId, isGone: placement === PLACEMENT.gone || placement === PLACEMENT.elsewhere };
}

/** Projects that are arriving, leaving, or gone with rows left here. */
export async function projectsMoving(queries: Queries): Promise<ProjectId[]> {
  const rows = await queries.query<{ id: ProjectId }>(`select id from projects where ${IS_MOVING} order by id`);
  return rows.map(({ id }) => id);
}

/** The `projects` that live here and are not leaving. */
export async function projectsHere(queries: Queries, projects: readonly ProjectId[]): Promise<ProjectId[]> {
  if (projects.length === 0) return [];
  const rows = await queries.query<{ id: ProjectId }>(
    `select id from projects where id in (??) and placement = ${PLACEMENT.here}`,
    [[...projects]],
  );
  return rows.map(({ id }) => id);
}

/** A condition that excludes rows of `projects`, for use after `where` or `and`; empty without projects. */
export function excluding(
  projects: Iterable<ProjectId>,
  column = 'project_id',
): { where: string; and: string; params: ProjectId[][] } {
  const ids = [...projects];
  if (ids.length === 0) return { where: '', and: '', params: [] };
  const condition = `${column} not in (??)`;
  return { where: ` where ${condition}`, and: ` and ${condition}`, params: [ids] };
}

/** The condition that excludes projects that are being moved. */
export async function excludingMoving(queries: Queries, column?: string): Promise<ReturnType<typeof excluding>> {
  return excluding(await projectsMoving(queries), column);
}

/** The placement of the project. Returns undefined if the project has no row. */
export async function placementOf(queries: Queries, projectId: ProjectId): Promise<Placement | undefined> {
  const [row] = await queries.query<{ placement: number }>('select placement from projects where id = ?', [projectId]);
  const [name] = Object.entries(PLACEMENT).find(([, value]) => value === row?.placement) ?? [];
  return name as Placement | undefined;
}

/** Whether reads of the project are complete here. */
export async function isReadableHere(queries: Queries, projectId: ProjectId): Promise<boolean> {
  const placement = await placementOf(queries, projectId);
  return placement === 'here' || placement === 'leaving';
}

/** Sets the placement. Batches that began before the commit may not have noticed the change: see `awaitBatches`. */
export async function setPlacement(tx: Transaction, projectId: ProjectId, placement: Placement): Promise<void> {
  await tx.run('update projects set placement = ? where id = ?', [PLACEMENT[placement], projectId]);
}

/** Waits for all batches that found the project here. Call this in a separate transaction after `setPlacement`. */
export async function awaitBatches(tx: Transaction, projectId: ProjectId): Promise<void> {
  await tx.query('select id from projects where id = ? for update', [projectId]);
}
