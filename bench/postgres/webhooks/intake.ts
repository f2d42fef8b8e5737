/**
 * The intake of webhooks that are built on a job library: `node intake.ts <library> <folder of its packages> <URL of its
 * database>`. The intake is an HTTP server that responds when the job is stored; `deliverer.ts` is the other process.
 */
import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import fastify from 'fastify';
import { DEVELOPMENT_TOKEN } from '../../waypost-process.ts';
import type { Job, JobAdder } from '../libraries/library.ts';
import { isLibraryName, loadLibrary } from '../libraries/load.ts';

const [name, folder = '', url = ''] = process.argv.slice(2);
if (!isLibraryName(name)) throw new Error(`there is no library "${name}"`);
const library = await loadLibrary(name, folder);
const adder = await library.openAdder(url);

const GROUP_MAX = 200;
const BODY_LIMIT_BYTES = 1_048_576;
const RESPONSE = { type: 'object', properties: { messageId: { type: 'string' } } } as const;
const BATCH = {
  type: 'array',
  items: {
    type: 'object',
    required: ['destination', 'body'],
    properties: { destination: { type: 'string' }, body: { type: 'string' } },
  },
} as const;

interface PendingJob {
  job: Job;
  resolve: () => void;
  reject: (error: Error) => void;
}

/** Jobs that arrive during an `addMany` are added together with the next `addMany`. */
function grouped({ addMany }: JobAdder): (job: Job) => Promise<void> {
  let pending: PendingJob[] = [];
  let isAdding = false;
  const addAll = async () => {
    while (pending.length > 0) {
      const group = pending.slice(0, GROUP_MAX);
      pending = pending.slice(GROUP_MAX);
      try {
        await addMany(group.map(({ job }) => job));
        for (const { resolve } of group) resolve();
      } catch (error) {
        for (const { reject } of group) reject(error as Error);
      }
    }
    isAdding = false;
  };
  return (job) =>
    new Promise((resolve, reject) => {
      pending.push({ job, resolve, reject });
      if (isAdding) return;
      isAdding = true;
      setImmediate(addAll);
    });
}

const add = library.benefitsFromGrouping ? grouped(adder) : adder.add;
const digest = (text: string) => createHash('sha256').update(text).digest();
const authorization = digest(`Bearer ${DEVELOPMENT_TOKEN}`);

const app = fastify({ bodyLimit: BODY_LIMIT_BYTES });
app.addHook('onRequest', async (request, reply) => {
  if (!timingSafeEqual(digest(request.headers.authorization ?? ''), authorization)) {
    await reply.code(401).send({ error: 'the token is not valid' });
  }
});
app.post<{ Params: { '*': string }; Body: string }>(
  '/publish/*',
  { schema: { response: { 200: RESPONSE } } },
  async (request) => {
    await add({ destination: new URL(request.params['*']).href, body: request.body });
    return { messageId: randomUUID() };
  },
);
app.post<{ Body: Required<Job>[] }>(
  '/batch',
  { schema: { body: BATCH, response: { 200: { type: 'array', items: RESPONSE } } } },
  async (request) => {
    await adder.addMany(
      request.body.map(({ destination, body }) => ({ destination: new URL(destination).href, body })),
    );
    return request.body.map(() => ({ messageId: randomUUID() }));
  },
);

const listening = await app.listen({ host: '127.0.0.1', port: 0 });
process.stdout.write(`${JSON.stringify({ event: 'listening', url: listening })}\n`);
process.once('SIGTERM', () => process.exit(0));
