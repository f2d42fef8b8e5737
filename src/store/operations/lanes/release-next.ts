/** What comes next when slots became free: the next of a queue, of a project's line, or of a key's wait list? */
import type { ProjectId } from '../../../engine/model.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { FlowLanes, type FlowRef, flowRefsOf } from './flow-lanes.ts';
import { ProjectGate, releaseHeld } from './project-gate.ts';
import { advance, type QueueHead, type QueueRef, queuesById } from './queue-lanes.ts';

/** Lanes that may have a slot more than before. */
export interface Freed {
  queues?: readonly QueueRef[];
  flowKeys?: readonly FlowRef[];
  projects?: Iterable<ProjectId>;
}

/** What was released, before the next turn of the keys is set: some of it can be claimed at once. */
export interface Released {
  heads: readonly QueueHead[];
  /** Projects whose line has released messages. Those go before all other messages of the project. */
  projectsWithLine: ReadonlySet<ProjectId>;
  flows: FlowLanes;
  gate: ProjectGate;
}

/** Releases what comes next and notes when it is due. `claimSome` answers the keys that it has claimed of it. */
export async function releaseNext(
  context: WriteContext,
  freed: Freed,
  nowMs: number,
  claimSome: (released: Released) => Promise<ReadonlySet<number>> = async () => new Set(),
): Promise<void> {
  const { tx, limits, due } = context;
  const gate = new ProjectGate(tx, limits.parallelismMax);
  const heads = await advance(tx, (await queuesById(tx, freed.queues ?? [])).values());
  const sentOn = await releaseHeld(tx, gate, freed.projects ?? []);
  const flows = new FlowLanes(tx, nowMs);
  const onTheirWay = [...heads, ...sentOn];
  await flows.load([...(freed.flowKeys ?? []), ...flowRefsOf(onTheirWay)]);
  const projectsWithLine = new Set(sentOn.map(({ project_id }) => project_id));
  const claimed = await claimSome({ heads, projectsWithLine, flows, gate });
  for (const { key, due_at_ms, flow_key } of onTheirWay) {
    if (flow_key === null && !claimed.has(key)) due.note(due_at_ms);
  }
  if (sentOn.length > 0) due.note(nowMs);
  await flows.save(due);
}
