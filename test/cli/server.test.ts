/**
 * The server as a process: start, signals and exit codes. A data folder that another process uses, and what it keeps after the
 * server: server.full.test.ts.
 */
import { once } from 'node:events';
import { closeSync, existsSync, openSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { Client, Receiver } from '@upstash/qstash';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { DEVELOPMENT_TOKEN } from '../../bench/waypost-process.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { portOf } from '../support/listen.ts';
import { Servers } from '../support/servers.ts';
import { giveCommand } from '../support/waypost-command.ts';

describe('a server process', () => {
  let servers: Servers;
  let dataDir: string;

  beforeEach(() => {
    servers = new Servers();
    dataDir = servers.dataDir;
  });
  afterEach(() => servers.close());

  const startDev = (...args: string[]) => servers.start(['dev', ...args]);
  const startServe = (env: Record<string, string> = {}) => servers.start(['serve'], env);

  it('delivers for the official client, signed, and ends with 0 at SIGTERM', async () => {
    const server = startDev();
    const url = await server.url();
    const received: { body: string; signature: string }[] = [];
    const endpoint = await servers.openEndpoint((request, response) => {
      let body = '';
      request.on('data', (chunk) => {
        body += chunk;
      });
      request.on('end', () => {
        received.push({ body, signature: String(request.headers['upstash-signature']) });
        response.end();
      });
    });
    const client = new Client({ baseUrl: url, token: DEVELOPMENT_TOKEN });
    await client.publishJSON({ url: endpoint, body: { hello: 'world' } });
    const [delivery] = await eventually('the delivery', () => received.length > 0 && received);
    const receiver = new Receiver({
      currentSigningKey: 'sig_7kYjw48mhY7kAjqNGcy6cr29RJ6r',
      nextSigningKey: 'sig_5ZB6DVzB1wjE8S6rZ7eenA8Pdnhs',
    });
    expect(delivery?.body).toBe('{"hello":"world"}');
    expect(await receiver.verify({ signature: delivery?.signature ?? '', body: delivery?.body ?? '' })).toBe(true);
    server.signal('SIGTERM');
    expect(await server.waitForExit()).toMatchObject({ code: 0, stderr: '' });
    expect(server.events().map(({ event }) => event)).toEqual(['listening', 'draining', 'stopped']);
  });

  it('prints the data folder and the address of the documentation', async () => {
    const docsUrl = 'https://docs.example.com';
    const server = servers.run(['dev', '--port', '0', '--data-dir', dataDir, '--docs-url', docsUrl]);
    const lines = `\nDocumentation: ${docsUrl}\nData: ${dataDir}\n`;
    await eventually('the lines', () => server.stdout.includes(lines));
  });

  it('prints lines for .env to people, with the address it really has, and leaves nothing behind with --memory', async () => {
    const server = servers.run(['dev', '--port', '0', '--memory', '--data-dir', dataDir]);
    const [, url] = await eventually('the lines', () =>
      /^QSTASH_URL=(http:\/\/127\.0\.0\.1:\d+)$/m.exec(server.stdout),
    );
    expect(server.stdout).toContain(`\nQSTASH_TOKEN=${DEVELOPMENT_TOKEN}\n`);
    expect(server.stdout).toContain(`\nConsole: ${url}/console\n`);
    expect(server.stdout).toContain('\nQSTASH_CURRENT_SIGNING_KEY=sig_7kYjw48mhY7kAjqNGcy6cr29RJ6r\n');
    expect(server.stdout).toContain('\nQSTASH_NEXT_SIGNING_KEY=sig_5ZB6DVzB1wjE8S6rZ7eenA8Pdnhs\n');
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect(existsSync(dataDir)).toBe(false);
  });

  it('warns of a variable that is no setting, and of an option that is none, once each', async () => {
    const server = servers.start(['dev'], {
      WAYPOST_PROT: '1',
      WAYPOST_TENANT: '1',
      WAYPOST_DOCS_URL: 'https://docs.example.com',
    });
    const url = await server.url();
    for (let time = 0; time < 2; time += 1) {
      const headers = { ...bearer(DEVELOPMENT_TOKEN), 'upstash-delay': '1h', 'upstash-retires': '5' };
      const answer = await fetch(`${url}/v2/publish/http://127.0.0.1:9`, { method: 'POST', headers });
      expect([answer.status, answer.headers.get('waypost-ignored')]).toEqual([200, 'Upstash-Retires']);
    }
    const warnings = server.events().filter(({ level }) => level === 'warn');
    expect(warnings.map(({ event, setting, reason, option }) => [event, setting ?? option, reason])).toEqual([
      ['setting_unknown', 'WAYPOST_PROT', 'did you mean WAYPOST_PORT?'],
      [
        'setting_unknown',
        'WAYPOST_TENANT',
        'no setting has this name; https://docs.example.com/settings.html lists all',
      ],
      ['option_ignored', 'Upstash-Retires', undefined],
    ]);
  });

  it('waits for running attempts when told to end, and says meanwhile that it is not ready', async () => {
    const server = startDev();
    const url = await server.url();
    const waiting: ServerResponse[] = [];
    const endpoint = await servers.openEndpoint((_request, response) => waiting.push(response));
    await new Client({ baseUrl: url, token: DEVELOPMENT_TOKEN }).publish({ url: endpoint });
    await eventually('the attempt', () => waiting.length === 1);
    server.signal('SIGTERM');
    const ready = await eventually('readyz to say no', async () => {
      const answer = await fetch(`${url}/readyz`);
      return answer.status !== 200 && answer;
    });
    expect(ready.status).toBe(503);
    const refused = await fetch(`${url}/v2/publish/${endpoint}`, {
      method: 'POST',
      headers: bearer(DEVELOPMENT_TOKEN),
    });
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).not.toBeNull();
    waiting[0]?.end();
    expect((await server.waitForExit()).code).toBe(0);
  });

  it('cuts attempts off at the limit and makes them again at the next start, uncounted', async () => {
    const attempts: string[] = [];
    const endpoint = await servers.openEndpoint((request, response) => {
      attempts.push(String(request.headers['upstash-retried']));
      if (attempts.length > 1) response.end();
    });
    const first = startDev('--drain-limit', '0');
    await new Client({ baseUrl: await first.url(), token: DEVELOPMENT_TOKEN }).publish({ url: endpoint });
    await eventually('the attempt', () => attempts.length === 1);
    first.signal('SIGTERM');
    expect((await first.waitForExit()).code).toBe(0);
    await startDev().url();
    await eventually('the second attempt', () => attempts.length === 2);
    expect(attempts).toEqual(['0', '0']);
  });

  it('ends once it has stopped, whatever else is under way', async () => {
    const timer = 'import{isMainThread}from"node:worker_threads";if(isMainThread)setInterval(()=>{},1e3)';
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(timer)}` };
    const server = servers.start(['dev', '--memory'], env);
    await server.url();
    server.signal('SIGTERM');
    expect((await server.waitForExit()).code).toBe(0);
    expect(server.events().at(-1)).toMatchObject({ event: 'stopped' });
  });

  it('ends at once at a second signal', async () => {
    const server = startDev('--drain-limit', '1h');
    let attempts = 0;
    const endpoint = await servers.openEndpoint(() => {
      attempts += 1;
    });
    await new Client({ baseUrl: await server.url(), token: DEVELOPMENT_TOKEN }).publish({ url: endpoint });
    await eventually('the attempt', () => attempts === 1);
    server.signal('SIGTERM');
    await eventually('the drain', () => server.events().some(({ event }) => event === 'draining'));
    server.signal('SIGINT');
    expect((await server.waitForExit()).code).toBe(130);
  });

  it('ends at once at a signal that comes before it has started', async () => {
    const database = createServer((socket) => socket.on('error', () => {})); // never answers
    onTestFinished(() => void database.close());
    const asked = once(database, 'connection');
    await once(database.listen(0, '127.0.0.1'), 'listening');
    const port = portOf(database);
    const server = servers.start(['dev'], { WAYPOST_DATABASE_URL: `postgres://x:x@127.0.0.1:${port}/x` });
    await asked;
    server.signal('SIGTERM');
    expect(await server.waitForExit()).toMatchObject({ code: 143, signal: null });
    expect(server.events().map(({ event }) => event)).toEqual(['stopped_at_once']);
  });

  it.skipIf(!existsSync('/dev/full'))(
    'goes on without the lines of its log that a full disk does not take',
    async () => {
      const url = `http://127.0.0.1:${await freePort()}`;
      const full = openSync('/dev/full', 'w');
      const args = ['dev', '--memory', '--port', new URL(url).port, '--log-format', 'json'];
      const server = servers.run(args, {}, full);
      closeSync(full);
      const health = () => fetch(`${url}/healthz`).then(({ status }) => status);
      const healthy = eventually('an answer', () => health().catch(() => undefined));
      expect(await Promise.race([healthy, server.waitForExit()])).toBe(200);
      const headers = { ...bearer(DEVELOPMENT_TOKEN), 'upstash-delay': '1h', 'upstash-retires': '5' }; // makes a line
      expect((await fetch(`${url}/v2/publish/http://127.0.0.1:9`, { method: 'POST', headers })).status).toBe(200);
      expect(await health()).toBe(200);
    },
  );

  it('serves with the token that init made, and refuses private destinations and the published token', async () => {
    const { stdout } = await giveCommand(['init', '--data-dir', dataDir]);
    const token = /^QSTASH_TOKEN=(.*)$/m.exec(stdout)?.[1] ?? '';
    const server = await servers.startInProcess(['serve']);
    const { url } = server;
    const publish = (as: string, target: string) =>
      fetch(`${url}/v2/publish/${target}`, { method: 'POST', headers: { ...bearer(as), 'Upstash-Delay': '1h' } });
    expect((await publish(token, 'https://192.0.2.1.example.invalid/')).status).toBe(400); // cannot be resolved
    expect((await publish(token, 'https://8.8.8.8/')).status).toBe(200);
    expect((await publish(DEVELOPMENT_TOKEN, 'https://8.8.8.8/')).status).toBe(401);
    const refused = await publish(token, 'http://127.0.0.1:9/');
    expect(refused.status).toBe(400);
    expect(await refused.text()).toContain('WAYPOST_ALLOW_DESTINATIONS');
    expect(JSON.stringify(server.events)).not.toContain(token);
  });

  it('refuses to serve when are encrypted with another encryption key of the database', async () => {
    await giveCommand(['init', '--data-dir', dataDir]);
    const other = Buffer.alloc(32, 1).toString('base64');
    const { code, stderr } = await startServe({ WAYPOST_ENCRYPTION_KEY: other }).waitForExit();
    expect(code).toBe(1);
    expect(stderr).toContain(
      `cannot decrypt the signing keys of the project "default": it was encrypted with another encryption key. Put the encryption.key of this store into ${dataDir}, or set WAYPOST_ENCRYPTION_KEY`,
    );
  });

  it('seals nothing with another key at such a start, as for operator events', async () => {
    await giveCommand(['init', '--data-dir', dataDir]);
    const strange = {
      WAYPOST_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString('base64'),
      WAYPOST_OPERATOR_EVENTS_URL: 'http://127.0.0.1:9/',
      WAYPOST_ALLOW_DESTINATIONS: '127.0.0.1/32',
    };
    expect((await startServe(strange).waitForExit()).code).toBe(1);
    await startServe().url(); // with its own key it goes on
  });
});

function bearer(token: string): Record<string, string> {
  return { Authorization: `Bearer ${token}` };
}
