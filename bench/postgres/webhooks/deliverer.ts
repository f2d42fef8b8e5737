/**
 * Delivers the webhooks that `intake.ts` has stored: `node deliverer.ts <library> <folder of its packages> <URL of its
 * database>`. Each webhook is signed like a delivery of Waypost, and retried by the library unless the response is 2xx.
 */
import { randomUUID } from 'node:crypto';
import { Agent } from 'undici';
import { signDelivery } from '../../../src/protocol/signature.ts';
import { serveLedger } from '../../arrival-ledger.ts';
import type { Job } from '../libraries/library.ts';
import { isLibraryName, loadLibrary } from '../libraries/load.ts';

const [name, folder = '', url = ''] = process.argv.slice(2);
if (!isLibraryName(name)) throw new Error(`there is no library "${name}"`);
const library = await loadLibrary(name, folder);

const SIGNING_KEY = 'sig_of_the_benchmark_0123456789abcdef';
const TIMEOUT_MS = 30_000;
/** Waypost's default limit for one origin. */
const agent = new Agent({ connections: 256, pipelining: 1, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });

async function deliver({ destination = '', body }: Job): Promise<void> {
  const { origin, pathname, search } = new URL(destination);
  const signature = signDelivery({
    url: destination,
    body: Buffer.from(body),
    signingKey: SIGNING_KEY,
    nowS: Math.floor(Date.now() / 1_000),
    jwtId: `jwt_${randomUUID()}`,
    dialect: 'upstash',
  });
  const response = await agent.request({
    origin,
    path: pathname + search,
    method: 'POST',
    headers: { 'content-type': 'text/plain', 'upstash-signature': signature },
    body,
  });
  await response.body.dump();
  if (response.statusCode > 299) throw new Error(`the endpoint responded with ${response.statusCode}`);
}

await library.handleJobs(url, deliver);
serveLedger({ kind: 'receiving' });
