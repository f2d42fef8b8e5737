/** One chunk of a bulk cancel, like `RunningEngine.cancelMatching`. */
import type { AttributeFilter } from '../../src/engine/lists/filters.ts';
import type { MessageKey, Millis, ProjectId } from '../../src/engine/model.ts';
import type { Store } from '../../src/store/store.ts';

export async function cancelMatching(
  { messages }: Pick<Store, 'messages'>,
  projectId: ProjectId,
  filter: AttributeFilter,
  afterKey: MessageKey,
  nowMs: Millis,
  limit = 500,
): Promise<{ cancelled: number; nextAfterKey?: MessageKey }> {
  const { keys, ...next } = await messages.findCandidates({ projectId, filter, afterKey, limit });
  return { cancelled: await messages.cancelCandidates({ projectId, keys, nowMs }), ...next };
}
