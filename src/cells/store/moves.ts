/** The moves of projects between cells, and the phase of each, in the directory. */
import type { MoveChange, MovePhase, ProjectMove } from '../../engine/accounts/store.ts';
import type { InProject, Millis } from '../../engine/model.ts';
import type { Queries } from '../../store/driver.ts';
import { noteChange } from '../../store/operations/accounts/version.ts';
import type { WriteContext } from '../../store/operations/logs/log-writer.ts';
import { directoryRead, read, write } from '../../store/operations/operation.ts';

const FIELDS = `project_id as "projectId", from_cell as "fromCell", to_cell as "toCell", phase, started_at_ms as "startedAtMs",
  mover, seen_at_ms as "renewedAtMs"`;

export const listMoves = read((queries: Queries): Promise<ProjectMove[]> => {
  return queries.query<ProjectMove>(`select ${FIELDS} from project_moves order by project_id`);
});

export const findMove = directoryRead(
  async (queries: Queries, { projectId }: InProject): Promise<ProjectMove | undefined> => {
    const [move] = await queries.query<ProjectMove>(`select ${FIELDS} from project_moves where project_id = ?`, [
      projectId,
    ]);
    return move;
  },
);

/**
 * Like changes of accounts, changes of moves lock the project's row in the directory, and do not check the project's
 * placement.
 */
const ACCOUNTS_WRITE = { changesAccounts: true };

/**
 * Starts a move. Returns the current move of the project, which may be an earlier move. Returns undefined if the project
 * is in another cell.
 */
export const startMove = write(
  ACCOUNTS_WRITE,
  async ({ tx }: WriteContext, move: Omit<ProjectMove, 'phase' | 'renewedAtMs'>): Promise<ProjectMove | undefined> => {
    const found = await findMove(tx, move);
    if (found) return found;
    const { projectId, fromCell, toCell, startedAtMs, mover } = move;
    const there = await tx.query('select id from projects where id = ? and cell = ?', [projectId, fromCell]);
    if (there.length === 0) return undefined;
    const started: ProjectMove = { ...move, phase: 'copying', renewedAtMs: startedAtMs };
    await tx.insertMany(
      'project_moves',
      ['project_id', 'from_cell', 'to_cell', 'phase', 'started_at_ms', 'mover', 'seen_at_ms'],
      [[projectId, fromCell, toCell, started.phase, startedAtMs, mover, startedAtMs]],
    );
    return started;
  },
);

/**
 * Renews the lease of `mover`, or takes over a lease that was last renewed before `expiredBeforeMs`. Returns false if
 * another command has the lease, or the project is not being moved.
 */
export const renewMove = write(
  ACCOUNTS_WRITE,
  async (
    { tx }: WriteContext,
    { projectId, mover, nowMs, expiredBeforeMs = 0 }: MoveChange & { nowMs: Millis; expiredBeforeMs?: Millis },
  ): Promise<boolean> => {
    const kept = await tx.run(
      'update project_moves set mover = ?, seen_at_ms = ? where project_id = ? and (mover = ? or seen_at_ms < ?)',
      [mover, nowMs, projectId, mover, expiredBeforeMs],
    );
    return kept > 0;
  },
);

export const setMovePhase = write(
  ACCOUNTS_WRITE,
  async ({ tx }: WriteContext, { projectId, mover, phase }: MoveChange & { phase: MovePhase }): Promise<void> => {
    await tx.send("update project_moves set phase = ? where project_id = ? and mover = ? and phase <> 'switched'", [
      phase,
      projectId,
      mover,
    ]);
  },
);

/**
 * Assigns the project to the new cell. Returns false if this mover has not paused the move, because another mover has
 * taken over or cancelled the move.
 */
export const switchMove = write(
  ACCOUNTS_WRITE,
  async ({ tx }: WriteContext, { projectId, mover }: MoveChange): Promise<boolean> => {
    const switched = await tx.run(
      "update project_moves set phase = 'switched' where project_id = ? and mover = ? and phase = 'paused'",
      [projectId, mover],
    );
    if (switched === 0) return false;
    await tx.send(
      'update projects set cell = (select to_cell from project_moves where project_id = projects.id) where id = ?',
      [projectId],
    );
    await noteChange(tx);
    return true;
  },
);

/** Deletes a move that is done or cancelled. */
export const endMove = write(
  ACCOUNTS_WRITE,
  async ({ tx }: WriteContext, { projectId, mover }: MoveChange): Promise<void> => {
    await tx.send(
      "delete from project_moves where project_id = ? and mover = ? and phase in ('switched', 'cancelled')",
      [projectId, mover],
    );
  },
);
