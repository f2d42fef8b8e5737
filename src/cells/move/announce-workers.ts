/**
 * Records a heartbeat in the new cell of a project for each worker with an attempt of the project. The claims of these
 * attempts move to the new cell, where a worker without a heartbeat would expire and its attempts would be repeated.
 * Before the recorded heartbeat expires, the worker reads the new placement from the directory and sends its own
 * heartbeats.
 */
import type { ProjectId } from '../../engine/model.ts';
import type { Driver } from '../../store/driver.ts';

export async function announceWorkers(move: { source: Driver; target: Driver; projectId: ProjectId }): Promise<void> {
  const { source, target, projectId } = move;
  const busy = await source.transaction(async (tx) =>
    tx.query<{ id: string; timeout_ms: number; leaving: number }>(
      `select id, timeout_ms, leaving from workers
       where id in list (select worker from messages where project_id = ? and claim_token is not null)
         and beat_at_ms + timeout_ms >= ? order by id`,
      [projectId, await tx.nowMs()],
    ),
  );
  if (busy.length === 0) return;
  await target.transaction(async (tx) => {
    const nowMs = await tx.nowMs();
    for (const { id, timeout_ms: timeoutMs, leaving } of busy) {
      await tx.send(
        `insert into workers (id, started_at_ms, beat_at_ms, timeout_ms, leaving, accounts_version) values (?, ?, ?, ?, ?, 0)
         on conflict (id) do update set beat_at_ms = excluded.beat_at_ms, timeout_ms = excluded.timeout_ms, leaving = excluded.leaving
         where workers.beat_at_ms < excluded.beat_at_ms`,
        [id, nowMs, nowMs, timeoutMs, leaving],
      );
    }
  });
}
