/** Measures one running server: a burst until all messages are delivered, then a steady 500 messages per second. */
import { cpuSeconds, type ListeningProcess, residentMebibytes } from './child-process.ts';
import { type LoadTarget, publishAll, publishPaced } from './load.ts';
import type { Receiver } from './receiver-process.ts';
import { arrivalDelaysMs, quantile } from './statistics.ts';

export interface Measurement {
  /** Messages per second, from the first publish to the last arrival. */
  throughputPerSecond: number;
  /** Latency of a publish in the burst, with 64 concurrent publishes. */
  publishP50Ms: number;
  publishP99Ms: number;
  /** Latency of a publish at the steady rate. */
  steadyPublishP50Ms: number;
  steadyPublishP99Ms: number;
  /** From publish to arrival at the steady rate. */
  arrivalP50Ms: number;
  arrivalP99Ms: number;
  /** User and system time of the server process per 1,000 messages of the burst, in seconds. */
  cpuSecondsPerThousand: number;
  residentMebibytes: number;
  /** Messages that never arrived. Anything but 0 makes the other figures worthless. */
  missing: number;
  /** Arrivals of messages that had already arrived. */
  repeated: number;
}

export interface Workload {
  /** Messages of the burst. */
  messages: number;
  /** Messages of a preceding unmeasured burst, which compiles code and opens connections. */
  warmUpMessages: number;
  steadyPerSecond: number;
  steadySeconds: number;
  /** Maximum time between the last publish and the last arrival. */
  deliveryLimitMs: number;
}

/** The workload of each round of `npm run bench`. */
export const DEFAULT_WORKLOAD: Workload = {
  messages: 30_000,
  warmUpMessages: 10_000,
  steadyPerSecond: 500,
  steadySeconds: 5,
  deliveryLimitMs: 60_000,
};

export async function measure(
  server: ListeningProcess,
  receiver: Receiver,
  target: LoadTarget,
  workload: Workload,
): Promise<Measurement> {
  await receiver.expect(workload.warmUpMessages);
  await publishAll(target, workload.warmUpMessages);
  const warmedUp = await receiver.complete(workload.deliveryLimitMs);
  if (!warmedUp) throw new Error(`the warm-up was not delivered; output of the server:\n${server.output()}`);

  await receiver.expect(workload.messages);
  const cpuBefore = cpuSeconds(server.pid);
  const burst = await publishAll(target, workload.messages);
  await receiver.complete(workload.deliveryLimitMs);
  const cpuAfter = cpuSeconds(server.pid);
  const resident = residentMebibytes(server.pid);
  const arrived = await receiver.report();

  const steadyMessages = Math.round(workload.steadyPerSecond * workload.steadySeconds);
  await receiver.expect(steadyMessages);
  const steady = await publishPaced(target, steadyMessages, workload.steadyPerSecond);
  await receiver.complete(workload.deliveryLimitMs);
  const steadyArrived = await receiver.report();
  const delaysMs = arrivalDelaysMs(steady.sentNs, steadyArrived.arrivalsNs);

  return {
    throughputPerSecond: workload.messages / (Number(arrived.lastArrivalNs - burst.startedNs) / 1e9),
    publishP50Ms: quantile(burst.publishMs, 0.5),
    publishP99Ms: quantile(burst.publishMs, 0.99),
    steadyPublishP50Ms: quantile(steady.publishMs, 0.5),
    steadyPublishP99Ms: quantile(steady.publishMs, 0.99),
    arrivalP50Ms: quantile(delaysMs, 0.5),
    arrivalP99Ms: quantile(delaysMs, 0.99),
    cpuSecondsPerThousand: ((cpuAfter - cpuBefore) / workload.messages) * 1000,
    residentMebibytes: resident,
    missing: workload.messages - arrived.distinct + (steadyMessages - steadyArrived.distinct),
    repeated: arrived.repeated + steadyArrived.repeated,
  };
}
