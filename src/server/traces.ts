/** Creates the recorder of spans if a collector is configured. Otherwise the code of the recorder is not loaded. */
import type { Config } from '../config/table.ts';
import type { WorkerId } from '../engine/model.ts';
import type { EventLog } from '../engine/ports.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { systemClock } from '../system/system.ts';
import { readVersion } from '../system/version.ts';
import type { SpanRecorder } from '../telemetry/traces/span-recorder.ts';

/** Resolves to undefined if no collector is configured. Throws `CannotStart`. */
export async function openTraces(
  { tracesEndpoint: endpoint }: Pick<Config, 'tracesEndpoint'>,
  { worker: instance, log }: { worker: WorkerId; log: EventLog },
): Promise<SpanRecorder | undefined> {
  if (endpoint === '') return undefined;
  if (!URL.canParse(endpoint)) throw new CannotStart(`WAYPOST_TRACES_ENDPOINT: ${endpoint} is no URL`);
  const { SpanRecorder } = await import('../telemetry/traces/span-recorder.ts');
  const { Collector } = await import('../telemetry/traces/collector.ts');
  const { readCollectorOptions, readResource } = await import('../telemetry/traces/environment.ts');
  const version = readVersion();
  // biome-ignore lint/style/noProcessEnv: the variables of OpenTelemetry are no settings of Waypost
  const environment = process.env;
  try {
    const sender = { version, resource: readResource({ instance, version }, environment) };
    const collector = new Collector(readCollectorOptions(endpoint, environment));
    return new SpanRecorder(sender, collector, systemClock, (reason, count) =>
      log.warn('spans_dropped', { reason, count }),
    );
  } catch (error) {
    throw new CannotStart((error as Error).message, { cause: error });
  }
}
