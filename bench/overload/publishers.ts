/** Clients that publish as fast as the answers come, one request at a time on each connection, and do as a 503 says. */
import { setTimeout as sleep } from 'node:timers/promises';
import { BarePublisher, type LoadTarget } from '../load.ts';

export interface Published {
  /** Publishes that were answered 2xx. */
  acked: number;
  /** Publishes that were answered 503. */
  shed: number;
  /** Of those that were answered 2xx, from the request to its answer. */
  publishMs: number[];
}

/**
 * Publishes messages with ascending numbers for `seconds`. Who is answered 503 publishes nothing on that connection for the
 * seconds that `Retry-After` says. Rejects on any other refusal, or when a connection breaks.
 */
export async function publishFor(target: LoadTarget, connections: number, seconds: number): Promise<Published> {
  const published: Published = { acked: 0, shed: 0, publishMs: [] };
  const publishers = await openAll(target, connections);
  let next = 0;
  const endMs = performance.now() + 1_000 * seconds;
  const hammer = async (publisher: BarePublisher): Promise<void> => {
    while (performance.now() < endMs) {
      const startMs = performance.now();
      const refusal = await answerTo(publisher, next++);
      if (refusal === undefined) {
        published.acked += 1;
        published.publishMs.push(performance.now() - startMs);
      } else {
        published.shed += 1;
        await sleep(Math.min(1_000 * retryAfterSeconds(refusal), Math.max(0, endMs - performance.now())));
      }
    }
  };
  try {
    await Promise.all(publishers.map(hammer));
  } finally {
    for (const publisher of publishers) publisher.close();
  }
  return published;
}

/** A few at a time, so that none is refused by a full backlog of the listening socket. */
async function openAll(target: LoadTarget, connections: number): Promise<BarePublisher[]> {
  const publishers: BarePublisher[] = [];
  while (publishers.length < connections) {
    const piece = Math.min(64, connections - publishers.length);
    publishers.push(...(await Promise.all(Array.from({ length: piece }, () => BarePublisher.open(target)))));
  }
  return publishers;
}

/** `undefined`: accepted. Else the answer with status 503. */
function answerTo(publisher: BarePublisher, messageNumber: number): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    publisher.onAnswer = () => resolve(undefined);
    publisher.onRefusal = (answer) => {
      if (answer.startsWith('HTTP/1.1 503 ')) resolve(answer);
      else reject(new Error(`publish refused: ${answer}`));
    };
    publisher.onFailure = reject;
    publisher.publish(messageNumber);
  });
}

function retryAfterSeconds(answer: string): number {
  const seconds = /\r\nretry-after: *(\d+)\r\n/i.exec(answer)?.[1];
  if (seconds === undefined) throw new Error(`a 503 without Retry-After: ${answer}`);
  return Number(seconds);
}
