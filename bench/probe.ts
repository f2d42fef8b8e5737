/** Measures the latency of messages at a steady rate while other work is in progress. */
import { type LoadResult, type LoadTarget, publishPaced } from './load.ts';
import type { Receiver } from './receiver-process.ts';
import { arrivalDelaysMs, median, quantile } from './statistics.ts';

const PROBES_PER_SECOND = 200;

export interface Probe {
  arrivalP99Ms: number;
  publishMs: number[];
  missing: number;
}

export async function probe(receiver: Receiver, to: LoadTarget, messages: number): Promise<Probe> {
  await receiver.expect(messages);
  const published: LoadResult = await publishPaced(to, messages, PROBES_PER_SECOND);
  await receiver.complete(60_000);
  const arrived = await receiver.report();
  return {
    arrivalP99Ms: quantile(arrivalDelaysMs(published.sentNs, arrived.arrivalsNs), 0.99),
    publishMs: [...published.publishMs],
    missing: messages - arrived.distinct,
  };
}

/** The median of three probes: a checkpoint or other load on the machine rarely affects two of them. */
export async function probeThrice(receiver: Receiver, to: LoadTarget, messages: number): Promise<Probe> {
  const probes: Probe[] = [];
  for (let i = 0; i < 3; i += 1) probes.push(await probe(receiver, to, messages));
  return {
    arrivalP99Ms: median(probes.map(({ arrivalP99Ms }) => arrivalP99Ms)),
    publishMs: probes.flatMap(({ publishMs }) => publishMs),
    missing: probes.reduce((sum, { missing }) => sum + missing, 0),
  };
}
