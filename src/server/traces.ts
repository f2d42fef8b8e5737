/** Opens the recorder of spans where a collector is named; nothing of it is loaded otherwise. */
import type { Config } from '../config/table.ts';
import type { WorkerId } from '../engine/model.ts';
import type { EventLog } from '../engine/ports.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { systemClock } from '../system/system.ts';
import { readVersion } from '../system/version.ts';
import type { SpanRecorder } from '../telemetry/traces/span-recorder.ts';

/** `undefined`: nobody collects traces. Throws `CannotStart`. */
export async function openTraces(
  { tracesEndpoint: endpoint }: Pick<Config, 'tracesEndpoint'>,
  { worker: instance, log }: { worker: WorkerId; log: EventLog },
): Promise<SpanRecorder | undefined> {
  if (endpoint === '') return undefined;
  if (!URL.canParse(endpoint)) throw new CannotStart(`WAYPOST_TRACES_ENDPOINT: ${endpoint} is no URL`);
  const traces = await import('../telemetry/traces/span-recorder.ts');
  const { startExporterThread } = await import('../telemetry/traces/exporter-thread.ts');
  const options = { endpoint, instance, version: readVersion() };
  const startThread: ConstructorParameters<typeof SpanRecorder>[0]['startThread'] = (onReply) =>
    startExporterThread(options, onReply);
  const onDropped = (reason: string, count: number): void => log.warn('spans_dropped', { reason, count });
  return new traces.SpanRecorder({ startThread, machine: systemClock, onDropped });
}
