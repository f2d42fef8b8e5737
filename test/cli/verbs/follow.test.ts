/** `logs -f` and `runs tail`: their live output, and the effect of a broken connection. */
import { createServer, type ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { runCommandLine } from '../../../src/cli/command-line.ts';
import { eventually } from '../../support/eventually.ts';
import { listen, originOf } from '../../support/listen.ts';
import { TcpProxy } from '../../support/tcp-proxy.ts';
import { askedServer, NOBODY } from './support.ts';

const server = askedServer();
const { done } = server;
const ends: (() => unknown)[] = [];
afterEach(() => Promise.all(ends.splice(0).map((end) => end())));

/** A command under way. */
class Following {
  stdout = '';
  stderr = '';
  readonly ended: Promise<number>;

  constructor(args: readonly string[], env: Record<string, string>) {
    this.ended = runCommandLine(args, {
      env,
      print: (text) => {
        this.stdout += text;
      },
      printError: (text) => {
        this.stderr += text;
      },
      readInput: async () => new Uint8Array(),
      isInteractive: false,
      color: false,
    });
  }

  says(text: string): Promise<unknown> {
    return eventually(
      () => `${text} in ${this.stderr}`,
      () => this.stderr.includes(text),
    );
  }

  shows(text: string): Promise<unknown> {
    return eventually(
      () => `${text} in ${this.stdout}`,
      () => this.stdout.includes(text),
    );
  }
}

async function follow(...args: string[]): Promise<Following> {
  const following = new Following(args, server.env);
  await following.says('Following the log');
  return following;
}

const delayed = (...args: string[]) => done('publish', `${NOBODY}/f`, '--delay', '1h', ...args).then((id) => id.trim());
const idsIn = (text: string): string[] => text.match(/msg_\w+/g) ?? [];

describe('logs -f', () => {
  it('shows what happens, by the same filters', async () => {
    const following = await follow('logs', '-f', '--label', 'live', '--count', '2');
    await delayed('--label', 'other');
    const id = await delayed('--label', 'live');
    await done('messages', 'cancel', '--label', 'other', '--yes');
    await done('messages', 'cancel', id, '--yes');
    expect(await following.ended).toBe(0);
    expect(idsIn(following.stdout)).toEqual([id, id]);
  });

  it('goes on after its connection broke, and tells everything once', async () => {
    const proxy = await TcpProxy.open(Number(new URL(server.url).port));
    ends.push(() => proxy.close());
    const args = ['logs', '-f', '--label', 'kept', '--count', '6', '--server', proxy.through(server.url)];
    const following = await follow(...args);
    const ids = [await delayed('--label', 'kept'), await delayed('--label', 'kept')];
    await following.shows(ids[1] ?? '');
    proxy.pointTo(9);
    proxy.cutAll();
    await following.says('trying again in 0.5 s');
    for (let n = 0; n < 3; n += 1) ids.push(await delayed('--label', 'kept'));
    await following.says('trying again in 1 s');
    proxy.pointTo(Number(new URL(server.url).port));
    await following.says(`again.\n`);
    ids.push(await delayed('--label', 'kept'));
    expect(await following.ended).toBe(0);
    expect(idsIn(following.stdout)).toEqual(ids);
    await done('messages', 'cancel', '--label', 'kept', '--yes');
  });

  it('reads in the log what the stream left out, whatever the order in which it came', async () => {
    const entry = (n: number) => ({ id: `100-${n}`, time: 100, state: 'CREATED', messageId: `msg_${n}`, url: NOBODY });
    const send = (response: ServerResponse, name: string, data: object, id = '') =>
      response.write(`event: ${name}\n${id && `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`);
    const asked: string[] = [];
    const flooded = createServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? '', NOBODY);
      if (pathname.endsWith('/entries')) {
        asked.push(searchParams.get('cursor') ?? '');
        response.end(JSON.stringify({ entries: [2, 3, 4, 5].map(entry) }));
        return;
      }
      send(response, 'open', {}, '100-1');
      send(response, 'entry', entry(3));
      send(response, 'lost', { count: 2 });
      send(response, 'entry', entry(5));
      send(response, 'entry', entry(6));
    });
    await listen(flooded);
    ends.push(
      () => flooded.close(),
      () => flooded.closeAllConnections(),
    );
    const url = originOf(flooded);
    const following = new Following(['logs', '-f', '--count', '5'], { QSTASH_URL: url });
    expect(await following.ended).toBe(0);
    expect(idsIn(following.stdout).toSorted()).toEqual(['msg_2', 'msg_3', 'msg_4', 'msg_5', 'msg_6']);
    expect(asked).toEqual(['100-1']);
  });

  it('ends when the server was never there, or the token does not count', async () => {
    const gone = new Following(['logs', '-f'], { QSTASH_URL: NOBODY });
    expect(await gone.ended).toBe(4);
    expect(await new Following(['logs', '-f', '--token', 'nobody'], server.env).ended).toBe(5);
  });
});

describe('runs tail', () => {
  const trigger = (id: string, ...args: string[]) => done('trigger', `${NOBODY}/wf`, '--workflow-run-id', id, ...args);

  it('shows the steps of a run until it fails, each once', async () => {
    await trigger('failing', '--delay', '1s', '--retries', '0');
    const following = await follow('runs', 'tail', 'failing');
    expect(await following.ended).toBe(1);
    expect(following.stdout.match(/ init .* SUCCESS/g)).toHaveLength(1);
    expect(following.stdout).toContain('✗  failing  FAILED\n');
    expect(following.stdout).toContain('   failed: connection refused\n');
  });

  it('says by its exit code how the run ended', async () => {
    const headers = { authorization: `Bearer ${server.env['QSTASH_TOKEN']}` };
    for (const [id, query, code] of [
      ['stopped', '', 6],
      ['returned', '?cancel=false', 0],
    ] as const) {
      await trigger(id, '--delay', '1h');
      const following = await follow('runs', 'tail', id);
      await following.shows('init');
      await fetch(`${server.url}/v2/workflows/runs/${id}${query}`, { method: 'DELETE', headers });
      expect([id, await following.ended]).toEqual([id, code]);
      // Of a run that is over, the same at once.
      expect([id, (await server.waypost('runs', 'tail', id)).code]).toEqual([id, code]);
    }
    expect((await server.waypost('runs', 'tail', 'unknown')).code).toBe(3);
  });

  it('prints a line of JSON for each step, and one for the run', async () => {
    const lines = (await server.waypost('runs', 'tail', 'returned', '--json')).stdout.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line) as { stepName?: string; workflowState?: string })).toMatchObject([
      { stepName: 'init' },
      ...lines.slice(2).map(() => ({})),
      { workflowState: 'RUN_SUCCESS' },
    ]);
  });
});
