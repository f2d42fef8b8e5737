/** Runs the real server under load with the recorder between it and its files, and returns what was recorded. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildShim } from '../../bench/preload/build.ts';
import { startWaypost } from '../../bench/waypost-process.ts';
import { Client, messageIdOf } from '../crash/client.ts';
import { databaseName } from '../crash/database-file.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { type Endpoint, eventOf, openEndpoint, PROGRAMS } from './endpoint.ts';
import { type DiskRecord, openAcknowledgements, readRecordLog } from './record-log.ts';

export interface Recording {
  records: DiskRecord[];
  /** The database's name among the recorded files. */
  databaseFile: string;
  /** What the operator has apart from it. */
  encryptionKey: Uint8Array;
  acknowledged: number;
}

const FEW_AT_A_TIME = {
  'Upstash-Flow-Control-Key': 'few',
  'Upstash-Flow-Control-Value': 'parallelism=2, rate=50, period=1s',
};
// Enough publishes under way that commits are made of several.
const CLIENTS = 16;
const SHARE_OF_RUNS = 0.15;

/**
 * Publishes until at least `messages` answers were acknowledged: messages delivered at once, delayed, dead, in batches, in
 * lanes, with callbacks, and workflow runs with what moves them on.
 */
export async function recordRun(messages: number, seed: number): Promise<Recording> {
  const folder = mkdtempSync(join(tmpdir(), 'waypost-powercut-'));
  const dataDir = join(folder, 'data');
  const logPath = join(folder, 'record.log');
  const acknowledge = openAcknowledgements(logPath);
  const shim = buildShim(new URL('./recorder.c', import.meta.url));
  const endpoint = await openEndpoint();
  try {
    const server = await startWaypost({
      dataDir,
      env: { ...shim.env, WAYPOST_RECORD_LOG: logPath, WAYPOST_RECORD_PREFIX: `${dataDir}/` },
    });
    const client = new Client(server.url);
    const random = new SeededRandom(seed);
    let acknowledged = 0;
    const note = (id: string) => {
      acknowledge(id);
      acknowledged += 1;
    };
    endpoint.connect(client, note);
    const work = async () => {
      while (acknowledged < messages) {
        const dice = random.int(1, 100);
        if (random.chance(SHARE_OF_RUNS)) await triggerSome(client, endpoint, random, note);
        else for (const id of await publishSome(client, endpoint.url, dice)) note(id);
      }
    };
    try {
      await Promise.all(Array.from({ length: CLIENTS }, work));
    } finally {
      await client.close();
      // As sudden as the power cut: an orderly end would sync and tidy up what the replay is about.
      await server.end('SIGKILL');
    }
    if (endpoint.refusals.length > 0) throw new Error(endpoint.refusals[0]);
    const databaseFile = databaseName(dataDir);
    if (databaseFile === undefined) throw new Error('the server made no database');
    const encryptionKey = readFileSync(join(dataDir, 'encryption.key'));
    return { records: readRecordLog(logPath), databaseFile, encryptionKey, acknowledged };
  } finally {
    await endpoint.close();
    shim.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs that wait are notified before or after they do. */
async function triggerSome(
  client: Client,
  endpoint: Endpoint,
  random: SeededRandom,
  note: (id: string) => void,
): Promise<void> {
  const runId = `wfr_${random.uint32().toString(36)}`;
  const program = random.choose(PROGRAMS);
  note(await endpoint.trigger(client, runId, program));
  if (program !== 'waits') return;
  const reply = await client.call('POST', `/v2/notify/${runId}/${eventOf(runId)}`, {}, 'news');
  if (reply.kind !== 'ok') throw new Error(`a notification was not accepted: ${JSON.stringify(reply)}`);
  // None yet if it was saved for the wait to come.
  const { messageId } = reply.json as { messageId?: string };
  if (messageId !== undefined) note(messageId);
}

async function publishSome(client: Client, endpoint: string, dice: number): Promise<string[]> {
  if (dice <= 10) {
    const items = Array.from({ length: 5 }, () => ({ destination: `${endpoint}/ok`, body: 'one of five' }));
    const reply = await client.call('POST', '/v2/batch', { 'content-type': 'application/json' }, JSON.stringify(items));
    if (reply.kind !== 'ok') throw new Error(`a batch was not accepted: ${JSON.stringify(reply)}`);
    return (reply.json as unknown[]).map(messageIdOf);
  }
  const [path, headers] = requestOf(dice, endpoint);
  const reply = await client.call('POST', path, { 'content-type': 'text/plain', ...headers }, 'one alone');
  if (reply.kind !== 'ok') throw new Error(`a publish was not accepted: ${JSON.stringify(reply)}`);
  return [messageIdOf(reply.json)];
}

function requestOf(dice: number, endpoint: string): [path: string, headers: Record<string, string>] {
  if (dice <= 16) return [`/v2/enqueue/line/${endpoint}/ok`, {}];
  if (dice <= 30) return [`/v2/publish/${endpoint}/ok`, { 'Upstash-Delay': '1h' }];
  if (dice <= 40) {
    const isTold = { 'Upstash-Failure-Callback': `${endpoint}/ok` };
    return [`/v2/publish/${endpoint}/dead`, { 'Upstash-Retries': '0', ...isTold }];
  }
  return [`/v2/publish/${endpoint}/ok`, dice <= 50 ? FEW_AT_A_TIME : {}];
}
