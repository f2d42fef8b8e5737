/** Which parts of the contract does the server not have yet? Asked of the server itself, so that nobody keeps a list. */
import { listSettings } from '../../../src/config/table.ts';
import { type Answer, Subject } from './subject.ts';

export type Feature = keyof typeof PROBES;

/** Whether the server has the feature. */
type Probe = (server: Subject) => Promise<boolean>;

const PROBES = {
  queues: async (server) => (await server.ask('GET', '/v2/queues')).status !== 404,
  schedules: async (server) => (await server.ask('GET', '/v2/schedules')).status !== 404,
  'flow control': (server) =>
    accepts(server, { 'Upstash-Flow-Control-Key': 'k', 'Upstash-Flow-Control-Value': 'rate=1' }),
  'flow-control keys': async (server) => (await server.ask('GET', '/v2/flowControl')).status !== 404,
  callbacks: (server) => accepts(server, { 'Upstash-Callback': `${server.endpoint.origin}/callback` }),
  'rate limits': () => Promise.resolve(listSettings().some(({ name }) => /PerDayMax$/.test(name))),
} satisfies Record<string, Probe>;

async function accepts(server: Subject, headers: Record<string, string>): Promise<boolean> {
  const target = `/v2/publish/${server.destination('/probe')}`;
  return !saysUnavailable(await server.ask('POST', target, { headers }));
}

function saysUnavailable({ status, json }: Answer): boolean {
  return status === 400 && json.error.endsWith('is not available in this version');
}

export async function missingFeatures(): Promise<ReadonlySet<Feature>> {
  const server = await Subject.open();
  try {
    const missing = new Set<Feature>();
    for (const [feature, probe] of Object.entries(PROBES)) {
      if (!(await probe(server))) missing.add(feature as Feature);
    }
    return missing;
  } finally {
    await server.close();
  }
}
