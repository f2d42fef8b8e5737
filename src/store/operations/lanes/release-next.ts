/** Releases the next messages of queues, projects and flow-control keys when permits become free. */
import type { ProjectId } from '../../../engine/model.ts';
import type { WriteContext } from '../logs/log-writer.ts';
import { FlowLanes, type FlowRef, flowRefsOf } from './flow-lanes.ts';
import { ProjectGate, releaseWaiting } from './project-gate.ts';
import { advance, type QueueHead, type QueueRef, queuesById } from './queue-lanes.ts';

/** Lanes and projects with new capacity. */
export interface Freed {
  queues?: readonly QueueRef[];
  flowKeys?: readonly FlowRef[];
  projects?: Iterable<ProjectId>;
}

/** The released messages, which may be claimed at once, before `FlowLanes.save` sets the next times of the keys. */
export interface Released {
  heads: readonly QueueHead[];
  /** Projects with released messages. These messages precede all other messages of the project. */
  releasedProjects: ReadonlySet<ProjectId>;
  flows: FlowLanes;
  gate: ProjectGate;
}

/** Releases the next messages and notes when they are due. `claimSome` returns the message keys that it has claimed. */
export async function releaseNext(
  context: WriteContext,
  freed: Freed,
  nowMs: number,
  claimSome: (released: Released) => Promise<ReadonlySet<number>> = async () => new Set(),
): Promise<void> {
  const { tx, limits, due } = context;
  const gate = new ProjectGate(tx, limits.parallelismMax);
  const heads = await advance(tx, (await queuesById(tx, freed.queues ?? [])).values());
  const releasedByProject = await releaseWaiting(tx, gate, freed.projects ?? []);
  const flows = new FlowLanes(tx, nowMs);
  const released = [...heads, ...releasedByProject];
  await flows.load([...(freed.flowKeys ?? []), ...flowRefsOf(released)]);
  const releasedProjects = new Set(releasedByProject.map(({ project_id }) => project_id));
  const claimed = await claimSome({ heads, releasedProjects, flows, gate });
  for (const { key, due_at_ms, flow_key } of released) {
    if (flow_key === null && !claimed.has(key)) due.note(due_at_ms);
  }
  if (releasedByProject.length > 0) due.note(nowMs);
  await flows.save(due);
}
