/** Clients that publish as fast as responses arrive, one request at a time per connection, and obey a 503. */
import { setTimeout as sleep } from 'node:timers/promises';
import { BarePublisher, type LoadTarget } from '../load.ts';

export interface Published {
  /** Publishes with a 2xx response. */
  acked: number;
  /** Publishes with status 503. */
  shed: number;
  /** For 2xx responses: the time from the request to the response. */
  publishMs: number[];
}

/**
 * Publishes messages with ascending numbers for `seconds`. After a 503, a connection publishes nothing for the number of
 * seconds in `Retry-After`. Rejects on any other error response, or when a connection breaks.
 */
export async function publishFor(target: LoadTarget, connections: number, seconds: number): Promise<Published> {
  const published: Published = { acked: 0, shed: 0, publishMs: [] };
  const publishers = await openAll(target, connections);
  let next = 0;
  const endMs = performance.now() + 1_000 * seconds;
  const publishUntilEnd = async (publisher: BarePublisher): Promise<void> => {
    while (performance.now() < endMs) {
      const startMs = performance.now();
      const rejection = await publishOn(publisher, next++);
      if (rejection === undefined) {
        published.acked += 1;
        published.publishMs.push(performance.now() - startMs);
      } else {
        published.shed += 1;
        await sleep(Math.min(1_000 * retryAfterSeconds(rejection), Math.max(0, endMs - performance.now())));
      }
    }
  };
  try {
    await Promise.all(publishers.map(publishUntilEnd));
  } finally {
    for (const publisher of publishers) publisher.close();
  }
  return published;
}

/** Opens a few connections at a time, so that none is refused because the listen backlog is full. */
async function openAll(target: LoadTarget, connections: number): Promise<BarePublisher[]> {
  const publishers: BarePublisher[] = [];
  while (publishers.length < connections) {
    const batch = Math.min(64, connections - publishers.length);
    publishers.push(...(await Promise.all(Array.from({ length: batch }, () => BarePublisher.open(target)))));
  }
  return publishers;
}

/** Resolves to `undefined` if the message was accepted, otherwise to the response with status 503. */
function publishOn(publisher: BarePublisher, messageNumber: number): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    publisher.onResponse = () => resolve(undefined);
    publisher.onRejection = (response) => {
      if (response.startsWith('HTTP/1.1 503 ')) resolve(response);
      else reject(new Error(`publish rejected: ${response}`));
    };
    publisher.onFailure = reject;
    publisher.publish(messageNumber);
  });
}

function retryAfterSeconds(response: string): number {
  const seconds = /\r\nretry-after: *(\d+)\r\n/i.exec(response)?.[1];
  if (seconds === undefined) throw new Error(`a 503 without Retry-After: ${response}`);
  return Number(seconds);
}
