/** Runs the real server under load with the recorder between it and its files, and returns what was recorded. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildShim } from '../../bench/preload/build.ts';
import { startWaypost } from '../../bench/waypost-process.ts';
import { SeededRandom } from '../../src/testing/seeded-random.ts';
import { Client, messageIdOf } from '../crash/client.ts';
import { databaseName } from '../crash/database-file.ts';
import { type DiskRecord, openAcknowledgements, readRecordLog } from './record-log.ts';

export interface Recording {
  records: DiskRecord[];
  /** The database's name among the recorded files. */
  databaseFile: string;
  acknowledged: number;
}

const FEW_AT_A_TIME = {
  'Upstash-Flow-Control-Key': 'few',
  'Upstash-Flow-Control-Value': 'parallelism=2, rate=50, period=1s',
};
// Enough publishes under way that commits are made of several.
const CLIENTS = 16;

/** Publishes at least `messages` messages: delivered at once, delayed, dead, in batches, in lanes, with callbacks. */
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
    const work = async () => {
      while (acknowledged < messages) {
        const ids = await publishSome(client, endpoint.url, random.int(1, 100));
        for (const id of ids) acknowledge(id);
        acknowledged += ids.length;
      }
    };
    try {
      await Promise.all(Array.from({ length: CLIENTS }, work));
    } finally {
      await client.close();
      // As sudden as the power cut: an orderly end would sync and tidy up what the replay is about.
      await server.end('SIGKILL');
    }
    const databaseFile = databaseName(dataDir);
    if (databaseFile === undefined) throw new Error('the server made no database');
    return { records: readRecordLog(logPath), databaseFile, acknowledged };
  } finally {
    await endpoint.close();
    shim.remove();
    rmSync(folder, { recursive: true, force: true });
  }
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

async function openEndpoint(): Promise<{ url: string; close: () => Promise<void> }> {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => response.writeHead(request.url === '/ok' ? 200 : 500).end());
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
