/**
 * The intake of webhooks that are built on a library of jobs: `node intake.ts <library> <folder of its packages> <URL of its
 * database>`. An HTTP server that answers when the job is kept; `deliverer.ts` is the other process.
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

const GROUPED_MAX = 200;
const BODY_LIMIT_BYTES = 1_048_576;
const ANSWER = { type: 'object', properties: { messageId: { type: 'string' } } } as const;
const BATCH = {
  type: 'array',
  items: {
    type: 'object',
    required: ['destination', 'body'],
    properties: { destination: { type: 'string' }, body: { type: 'string' } },
  },
} as const;

interface Waiting {
  job: Job;
  kept: () => void;
  failed: (error: Error) => void;
}

/** What arrives while others are being added is added with one call, as soon as those are kept. */
function grouped({ addMany }: JobAdder): (job: Job) => Promise<void> {
  let waiting: Waiting[] = [];
  let isAdding = false;
  const addAll = async () => {
    while (waiting.length > 0) {
      const group = waiting.slice(0, GROUPED_MAX);
      waiting = waiting.slice(GROUPED_MAX);
      try {
        await addMany(group.map(({ job }) => job));
        for (const { kept } of group) kept();
      } catch (error) {
        for (const { failed } of group) failed(error as Error);
      }
    }
    isAdding = false;
  };
  return (job) =>
    new Promise((kept, failed) => {
      waiting.push({ job, kept, failed });
      if (isAdding) return;
      isAdding = true;
      setImmediate(addAll);
    });
}

const add = library.gainsByGroups ? grouped(adder) : adder.add;
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
  { schema: { response: { 200: ANSWER } } },
  async (request) => {
    await add({ destination: new URL(request.params['*']).href, body: request.body });
    return { messageId: randomUUID() };
  },
);
app.post<{ Body: Required<Job>[] }>(
  '/batch',
  { schema: { body: BATCH, response: { 200: { type: 'array', items: ANSWER } } } },
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
