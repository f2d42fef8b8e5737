/** The start of every test in this folder: a server whose storage is going to fail, a ledger, and endpoints. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe } from 'vitest';
import type { ListeningProcess } from '../../bench/child-process.ts';
import { buildShim, type Shim, shimObstacle } from '../../bench/preload/build.ts';
import { startWaypost } from '../../bench/waypost-process.ts';
import { Client, messageIdOf, type Reply } from '../crash/client.ts';
import { type Endpoints, openEndpoints } from '../crash/endpoints.ts';
import { inWords } from '../crash/findings.ts';
import { judge } from '../crash/judge.ts';
import { Ledger } from '../crash/ledger.ts';

/** Shorter than a minute, after which retention would tidy up what nobody else does. */
const SETTLE_LIMIT_MS = 40_000;

export class FaultyRun {
  readonly folder: string;
  readonly dataDir: string;
  readonly ledger: Ledger;
  readonly endpoints: Endpoints;
  readonly env: Readonly<Record<string, string>>;
  #server: ListeningProcess | undefined;
  #client: Client | undefined;
  #published = 0;

  /** Use `prepare`. */
  constructor(folder: string, endpoints: Endpoints, ledger: Ledger, env: Record<string, string>) {
    this.folder = folder;
    this.dataDir = join(folder, 'data');
    this.endpoints = endpoints;
    this.ledger = ledger;
    this.env = env;
    mkdirSync(this.dataDir);
  }

  static async prepare(env: (folder: string) => Record<string, string> = () => ({})): Promise<FaultyRun> {
    const folder = mkdtempSync(join(tmpdir(), 'waypost-fault-'));
    const ledger = new Ledger();
    return new FaultyRun(folder, await openEndpoints(ledger), ledger, env(folder));
  }

  async start(...flags: string[]): Promise<ListeningProcess> {
    this.#server = await startWaypost({ dataDir: this.dataDir, env: this.env, flags });
    await this.#client?.close();
    this.#client = new Client(this.#server.url);
    return this.#server;
  }

  async readyStatus(): Promise<number> {
    return (await fetch(`${this.#server?.url}/readyz`)).status;
  }

  client(): Client {
    if (this.#client === undefined) throw new Error('the server was not started');
    return this.#client;
  }

  /** Publishes one message of `bytes` bytes or a little more; the ledger learns what is known of it. */
  async publish(headers: Record<string, string> = {}, bytes = 0): Promise<Reply> {
    this.#published += 1;
    const tag = `${this.#published} ${'x'.repeat(bytes)}`;
    this.ledger.attempted(tag);
    const reply = await this.client().publish(this.endpoints.ok, tag, headers);
    if (reply.kind === 'ok') this.ledger.acked(tag, messageIdOf(reply.json));
    else if (reply.kind === 'unknown') this.ledger.unknown(tag);
    return reply;
  }

  /** Publishes `count` messages that must be accepted, every third of them half a second late. */
  async publishAccepted(count: number): Promise<void> {
    for (let i = 0; i < count; i += 1) {
      const reply = await this.publish(i % 3 === 0 ? { 'Upstash-Delay': '0.5s' } : {});
      if (reply.kind !== 'ok') throw new Error(`not accepted: ${JSON.stringify(reply)}\n${this.#server?.output()}`);
    }
  }

  /** After the fault is gone every acknowledged message must come to its end: what is wrong, in words. */
  async findings(): Promise<string[]> {
    return inWords((await judge(this.ledger, this.client(), SETTLE_LIMIT_MS)).broken);
  }

  async close(): Promise<void> {
    await this.#server?.end('SIGKILL');
    await this.#client?.close();
    await this.endpoints.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Declares tests of a server whose disk breaks while a file lies in `run().folder`: which ones, broken-disk.c says. */
export function describeBrokenDisk(title: string, declare: (run: () => FaultyRun) => void): void {
  const obstacle = shimObstacle();
  describe.skipIf(obstacle !== undefined)(`${title}${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`, () => {
    let shim: Shim;
    let run: FaultyRun;
    beforeEach(async () => {
      shim = buildShim(new URL('./broken-disk.c', import.meta.url));
      run = await FaultyRun.prepare((folder) => ({ ...shim.env, BROKEN_DISK: folder }));
    });
    afterEach(async () => {
      await run.close();
      shim.remove();
    });
    declare(() => run);
  });
}
