/** Calls every operation on accounts, cells, moves and workers, as `useEverything` does for messages. */
import type { Token } from '../../src/engine/accounts/store.ts';
import { PROJECT, T0, type World } from './conformance/world.ts';

export async function useAccounts({ store: { projects, workers } }: World): Promise<void> {
  const keys = { current: 'c', next: 'n' };
  const { projectId } = await projects.ensureProject({ name: 'p', signingKeys: keys, nowMs: T0 });
  const token = { tokenHash: 'own', scope: 'full', createdAtMs: T0 } satisfies Omit<Token, 'projectId'>;
  await projects.addToken({ ...token, projectId });
  await projects.makeToken({ projectId, by: 'own', token: { ...token, tokenHash: 'made' }, tokensMax: 2 });
  await projects.noteTokenUse({ tokenHash: 'own', nowMs: T0 });
  await projects.listTokens();
  await projects.listTokensOf({ projectId });
  await projects.revokeToken({ projectId, by: 'own', tokenId: 'made' });
  await projects.removeToken({ tokenHash: 'own' });
  await projects.signingKeys({ projectId });
  await projects.replaceSigningKeys({ projectId, expected: keys, next: { current: 'n', next: 'm' } });
  await projects.listProjects();
  const { version } = await projects.readAccounts();
  for (const worker of ['w1', 'w2'])
    await workers.heartbeat({ worker, timeoutMs: 1_000, isLeaving: false, accountsVersion: version });
  await workers.workersWithOldAccounts({});
  await workers.workersWithOldAccounts({ accountsVersion: version });
  await workers.claimsOf({ worker: 'w1' });
  await workers.orphanedClaims({ limit: 10 });
  await workers.leave({ worker: 'w2' });
}

export async function useCells({ store }: World): Promise<void> {
  const { cells, moves, projects } = store;
  await cells.addCell({ name: 'second', sealedUrl: 'sealed', nowMs: T0, firstName: 'first' });
  await cells.listCells();
  await cells.setCellDraining({ cellId: 2, isDraining: true });
  await cells.adoptProjects({ projects: await projects.listProjects() });
  await cells.initializeCell({ cellId: 1 });
  await cells.readCellId();
  const mover = { projectId: PROJECT, mover: 'm' };
  await moves.startMove({ ...mover, fromCell: 1, toCell: 2, startedAtMs: T0 });
  await moves.findMove(mover);
  await moves.listMoves();
  await moves.renewMove({ ...mover, nowMs: T0 });
  await moves.setMovePhase({ ...mover, phase: 'paused' });
  await moves.switchMove(mover);
  await moves.endMove(mover);
  await store.ping();
}
