/**
 * May a project be written to in this cell?
 *
 * A cell has a row in `projects` for each project that lives there, and `placement` says how it stands. Each batch of a
 * store that is one of several cells takes the share lock of the projects that it writes to, and takes it only where
 * the project is here. It asks without waiting and looks at the answer at its end, so that this costs no round trip.
 * Whoever changes `placement` takes the row's exclusive lock afterwards (`awaitBatches`): then no batch is left that has
 * seen the former value. Share locks exclude neither each other nor the lock of lanes (locks.ts). They are locks of rows,
 * because Citus does not pass advisory locks on to its nodes.
 *
 * Work that nobody asks for, such as a claim, leaves alone what belongs to projects on the move, and what it has chosen
 * is fenced like everything else. Whoever reads what belongs to a project reads its placement in the same
 * snapshot: a worker that has not heard of a move would find less than there is, or nothing.
 */
import type { ProjectId } from '../../../engine/model.ts';
import type { Queries, Transaction } from '../../driver.ts';

/** The numbers are stored: never change one, only add. Statements contain them as literals. */
export const PLACEMENT = {
  here: 0,
  /** A move copies it here. */
  arriving: 1,
  /** A move takes it away: what is left is being copied. */
  leaving: 2,
  /** It lives in another cell, and its rows here are being deleted. */
  gone: 3,
  /** It lives in another cell, and nothing else of it is here. The row stays, so that no program takes the project for a new one. */
  elsewhere: 4,
} as const;

export type Placement = keyof typeof PLACEMENT;

/** Of which a part of the rows may be here, though nobody may write to them; as a condition, for its partial index. */
const IS_MOVING = `placement in (${PLACEMENT.arriving}, ${PLACEMENT.leaving}, ${PLACEMENT.gone})`;

/** Nothing was done, because the project is not here. */
export interface AwayResult {
  kind: 'away';
  projectId: ProjectId;
  /** Whether it lives in another cell for certain; otherwise it is on its way. */
  isGone: boolean;
}

/** Another transaction has the project's row, and was not waited for. */
interface Blocked {
  kind: 'blocked';
  projectId: ProjectId;
}

/** What a batch asks of a project's placement. */
export interface PlacementCheck {
  /** Projects whose rows are left alone by work that nobody asks for. */
  moving(): Promise<ReadonlySet<ProjectId>>;
  /** The batch writes to these projects, by a choice of its own. */
  require(projects: Iterable<ProjectId>): void;
  /** The same, because each command names some. */
  requireFor(commands: Iterable<readonly [command: object, projects: Iterable<ProjectId>]>): void;
}

/** For a store that is the only cell: all projects are here. */
export const ALL_HERE: PlacementCheck = { moving: async () => NONE, require: () => {}, requireFor: () => {} };

const NONE: ReadonlySet<ProjectId> = new Set();

/** A batch has written to projects that are not here, or not free: it is rolled back and run without them. */
export class ProjectsNotHere extends Error {
  readonly projects: ReadonlySet<ProjectId>;
  /** The commands that named such a project. */
  readonly refused: ReadonlyMap<object, AwayResult | Blocked>;

  constructor(projects: ReadonlySet<ProjectId>, refused: ReadonlyMap<object, AwayResult | Blocked>) {
    super('a project is not here');
    this.name = 'NotHere';
    this.projects = projects;
    this.refused = refused;
  }
}

/** The fence of one batch. */
export class BatchPlacementCheck implements PlacementCheck {
  readonly #tx: Transaction;
  readonly #avoid: ReadonlySet<ProjectId>;
  readonly #locking: string;
  readonly #commands = new Map<ProjectId, object[]>();
  readonly #here: Promise<{ id: ProjectId }[]>[] = [];
  #moving: Promise<ReadonlySet<ProjectId>> | undefined;

  /** `avoid`: further projects to leave alone. `isPatient`: whether to wait for a project that another one has locked. */
  constructor(tx: Transaction, { avoid, isPatient }: { avoid: ReadonlySet<ProjectId>; isPatient: boolean }) {
    this.#tx = tx;
    this.#avoid = avoid;
    this.#locking = isPatient ? 'for key share' : 'for key share skip locked';
  }

  moving(): Promise<ReadonlySet<ProjectId>> {
    this.#moving ??= projectsMoving(this.#tx).then((ids) => new Set([...ids, ...this.#avoid]));
    return this.#moving;
  }

  require(projects: Iterable<ProjectId>): void {
    const added = new Set([...projects].filter((id) => !this.#commands.has(id)));
    for (const id of added) this.#commands.set(id, []);
    if (added.size > 0) this.#ask([...added]);
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
    for (const [id, named] of added) this.#commands.set(id, named);
  }

  #ask(projects: readonly ProjectId[]): void {
    const here = this.#tx.query<{ id: ProjectId }>(
      `select id from projects where id in (??) and placement = ${PLACEMENT.here} order by id ${this.#locking}`,
      [projects],
    );
    here.catch(() => {}); // then the statements after it fail too, and their failure is reported
    this.#here.push(here);
  }

  /** Throws `NotHere` unless all that is held is here, until the transaction ends. */
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
      const why = whyNot(id, placements.get(id));
      return (this.#commands.get(id) ?? []).map((command): [object, AwayResult | Blocked] => [command, why]);
    });
    throw new ProjectsNotHere(new Set(missing), new Map(refused));
  }
}

function whyNot(projectId: ProjectId, placement: number = PLACEMENT.elsewhere): AwayResult | Blocked {
  if (placement === PLACEMENT.here) return { kind: 'blocked', projectId };
  return { kind: 'away', projectId, isGone: placement === PLACEMENT.gone || placement === PLACEMENT.elsewhere };
}

/** Projects that arrive, leave, or have left rows behind. */
export async function projectsMoving(queries: Queries): Promise<ProjectId[]> {
  const rows = await queries.query<{ id: ProjectId }>(`select id from projects where ${IS_MOVING} order by id`);
  return rows.map(({ id }) => id);
}

/** Those of the projects that live here, and are not leaving. */
export async function projectsHere(queries: Queries, projects: readonly ProjectId[]): Promise<ProjectId[]> {
  if (projects.length === 0) return [];
  const rows = await queries.query<{ id: ProjectId }>(
    `select id from projects where id in (??) and placement = ${PLACEMENT.here}`,
    [[...projects]],
  );
  return rows.map(({ id }) => id);
}

/** A condition that leaves out rows of `projects`, as the first one or a further one; empty when there are none. */
export function excluding(
  projects: Iterable<ProjectId>,
  column = 'project_id',
): { where: string; and: string; params: ProjectId[][] } {
  const ids = [...projects];
  if (ids.length === 0) return { where: '', and: '', params: [] };
  const condition = `${column} not in (??)`;
  return { where: ` where ${condition}`, and: ` and ${condition}`, params: [ids] };
}

/** The same for the projects that are on the move now. */
export async function excludingMoving(queries: Queries, column?: string): Promise<ReturnType<typeof excluding>> {
  return excluding(await projectsMoving(queries), column);
}

/** How the project stands here; undefined: it has no row. */
export async function placementOf(queries: Queries, projectId: ProjectId): Promise<Placement | undefined> {
  const [row] = await queries.query<{ placement: number }>('select placement from projects where id = ?', [projectId]);
  const [name] = Object.entries(PLACEMENT).find(([, value]) => value === row?.placement) ?? [];
  return name as Placement | undefined;
}

/** Whether what is read of a project is all that there is of it. */
export async function isReadHere(queries: Queries, projectId: ProjectId): Promise<boolean> {
  const placement = await placementOf(queries, projectId);
  return placement === 'here' || placement === 'leaving';
}

/** Batches that begin after the commit see it. Those that began before it may still write: see `awaitBatches`. */
export async function setPlacement(tx: Transaction, projectId: ProjectId, placement: Placement): Promise<void> {
  await tx.run('update projects set placement = ? where id = ?', [PLACEMENT[placement], projectId]);
}

/** Waits until no batch is under way that saw the project here, in a transaction of its own after the change. */
export async function awaitBatches(tx: Transaction, projectId: ProjectId): Promise<void> {
  await tx.query('select id from projects where id = ? for update', [projectId]);
}
