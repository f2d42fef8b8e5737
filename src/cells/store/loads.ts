/** Estimates the load of each project of a cell, by reading a bounded number of rows. */
import type { Millis, ProjectId } from '../../engine/model.ts';
import type { Queries } from '../../store/driver.ts';

export interface EstimatedLoad {
  projectId: ProjectId;
  unfinished: number;
  /** The number of messages accepted in the last hour; `lastDay`: in the last day. */
  lastHour: number;
  lastDay: number;
  /** The average stored size of the project's latest messages. */
  bytesOfMessage: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The maximum of unfinished messages that are counted in a cell. */
const UNFINISHED_MAX = 100_000;
/** The number of a project's log entries whose messages are the sample for the average size. */
const SAMPLE_SIZE = 50;
/** Stored bytes of a message besides its headers and body (docs/scaling.md). */
const OVERHEAD_BYTES = 700;

const ACCEPTED = `select project_id, cast(sum(accepted) as bigint) as last_day,
    cast(sum(case when at_ms >= ? then accepted else 0 end) as bigint) as last_hour
  from minutes where at_ms >= ? group by project_id`;
const UNFINISHED = `select project_id, count(*) as unfinished
  from (select project_id from messages limit ?) m group by project_id`;
const BYTES = `select cast(coalesce(avg(length(c.header) + coalesce(length(c.body), 0)), 0) as bigint) as bytes
  from (select message_key from logs where project_id = ? order by at_ms desc, seq desc limit ?) l
  lookup contents c on (c.key = l.message_key)`;

/** The loads of projects that have unfinished messages or have accepted messages in the last day. */
export async function readLoads(queries: Queries, { nowMs }: { nowMs: Millis }): Promise<EstimatedLoad[]> {
  const [accepted, unfinished] = await Promise.all([
    queries.query<{ project_id: ProjectId; last_day: number; last_hour: number }>(ACCEPTED, [
      nowMs - HOUR_MS,
      nowMs - DAY_MS,
    ]),
    queries.query<{ project_id: ProjectId; unfinished: number }>(UNFINISHED, [UNFINISHED_MAX]),
  ]);
  const acceptedBy = new Map(accepted.map((row) => [row.project_id, row]));
  const unfinishedBy = new Map(unfinished.map((row) => [row.project_id, row.unfinished]));
  const projects = [...new Set([...acceptedBy.keys(), ...unfinishedBy.keys()])].toSorted((a, b) => a - b);
  return Promise.all(
    projects.map(async (projectId) => {
      const [size] = await queries.query<{ bytes: number }>(BYTES, [projectId, SAMPLE_SIZE]);
      const { last_hour: lastHour = 0, last_day: lastDay = 0 } = acceptedBy.get(projectId) ?? {};
      const bytesOfMessage = OVERHEAD_BYTES + (size?.bytes ?? 0);
      return { projectId, unfinished: unfinishedBy.get(projectId) ?? 0, lastHour, lastDay, bytesOfMessage };
    }),
  );
}
