/** Checks the promises of the container image, which is built and run by its own commands without a container engine. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { RUN_AS } from '../support/postgres/binaries.ts';
import { execForm, parseDockerfile, textsOf } from './dockerfile.ts';
import { Image, only } from './image.ts';
import { ROOT, readManifests } from './workloads.ts';

describe('the Dockerfile', () => {
  const stages = parseDockerfile(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'));
  const [build, , image] = stages;
  if (build === undefined || image === undefined) throw new Error('the Dockerfile has three stages');

  it('starts each stage from the same image of Node 24', () => {
    expect(new Set(stages.map(({ from }) => from))).toEqual(new Set(['node:24-slim']));
  });

  it('installs what the lock file names, and runs no script of a package', () => {
    const installs = stages.flatMap((stage) => textsOf(stage, 'RUN')).filter((text) => text.includes('npm'));
    expect(installs).toHaveLength(2);
    for (const install of installs) expect(install).toMatch(/^npm ci .*--ignore-scripts/);
  });

  it('runs as a user that a cluster can see is not root', () => {
    expect(only(image, 'USER')).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  });

  it('drains when it is stopped, keeps its data in a volume and is asked whether it lives', () => {
    expect(only(image, 'STOPSIGNAL')).toBe('SIGTERM');
    expect(only(image, 'VOLUME')).toBe('/data');
    expect(only(image, 'ENV').split(' ')).toContain('WAYPOST_DATA_DIR=/data');
    expect(only(image, 'HEALTHCHECK')).toMatch(/--timeout=\d+s .*CMD \["node", /);
  });

  it('starts the command, which gives Node its options', () => {
    expect(execForm(only(image, 'ENTRYPOINT'))).toEqual(['node', '/app/bin/waypost.js']);
  });
});

describe('the image', () => {
  let image: Image;
  let volumes: string;
  const children: ChildProcess[] = [];

  beforeAll(async () => {
    image = await Image.build();
    volumes = mkdtempSync(join(tmpdir(), 'waypost-volumes-'));
    chmodSync(volumes, 0o777);
  });
  afterAll(async () => {
    for (const child of children) await killed(child);
    image?.remove();
    if (volumes) rmSync(volumes, { recursive: true, force: true });
  });

  async function killed(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await closed;
  }

  /** Starts a container; `said` is what it has printed so far. */
  function start(args: string[], env: Record<string, string> = {}) {
    const child = image.run(args, env);
    children.push(child);
    const output = { said: '', complained: '' };
    child.stdout?.on('data', (chunk: Buffer) => {
      output.said += chunk.toString('utf8');
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      output.complained += chunk.toString('utf8');
    });
    const ended = once(child, 'close').then(([code]) => code as number | null);
    return { child, ended, output };
  }

  const isReady = async (port: string): Promise<boolean> => {
    try {
      return (await fetch(`http://127.0.0.1:${port}/readyz`)).ok;
    } catch {
      return false; // nobody listens yet
    }
  };

  /** A port that was free a moment ago: a health check must be told it. */
  const portOf = (said: string) => /"url":"http:\/\/[^"]*:(\d+)"/.exec(said)?.[1];

  it('holds the compiled program and what it needs, and neither sources nor tools', () => {
    const names = globSync(['app/*', 'app/node_modules/*'], { cwd: image.root });
    expect(names).toContain('app/dist');
    expect(names).toContain('app/node_modules/pg');
    // Without it each verb takes a tenth of a second longer.
    expect(existsSync(join(image.root, 'app/dist/cli/http/operations.json'))).toBe(true);
    const tools = ['typescript', 'vitest', 'vite', 'react', 'tailwindcss'].map((tool) => `app/node_modules/${tool}`);
    for (const absent of ['app/src', 'app/test', 'app/console', ...tools]) expect(names).not.toContain(absent);
  });

  it('has a data folder that only its user may open', () => {
    const { mode, uid } = statSync(join(image.root, 'data'));
    expect(mode & 0o777).toBe(0o700);
    expect(uid).toBe(RUN_AS?.uid ?? process.getuid?.());
  });

  it('refuses to serve before there is a token', async () => {
    const { ended, output } = start([], { WAYPOST_PORT: '0', WAYPOST_HOST: '127.0.0.1' });
    expect(await ended).toBe(1);
    expect(output.complained).toContain('"waypost init" creates a new one');
  });

  it('is set up by one run of init, serves, answers the health check, and drains at its stop signal', async () => {
    const first = start(['init']);
    expect(await first.ended, first.output.complained).toBe(0);
    expect(first.output.said).toMatch(/^QSTASH_TOKEN=.+\nQSTASH_CURRENT_SIGNING_KEY=sig_/);
    expect(existsSync(join(image.root, 'data/encryption.key'))).toBe(true);

    const { child, ended, output } = start([], { WAYPOST_PORT: '0', WAYPOST_HOST: '127.0.0.1' });
    const port = await eventually(
      () => `the server to listen: ${output.complained}`,
      () => portOf(output.said),
    );
    await eventually('the server to be ready', () => isReady(port));
    expect(await image.healthCheck({ WAYPOST_PORT: port })).toBe(0);
    const page = await fetch(`http://127.0.0.1:${port}/console/`);
    const [script = ''] = /\/console\/assets\/[^"]+\.js/.exec(await page.text()) ?? [];
    expect((await fetch(`http://127.0.0.1:${port}${script}`)).headers.get('content-type')).toMatch(/^text\/javascript/);
    // The operator's commands, as they are given with "exec".
    const tokens = image.shell('waypost tokens --json');
    expect(JSON.parse(tokens.stdout), tokens.stderr).toHaveLength(1);

    child.kill('SIGTERM');
    expect(await ended).toBe(0);
    expect(output.said).toContain('"event":"stopped"');
    expect(await image.healthCheck({ WAYPOST_PORT: port })).toBe(1);
  });

  it('is set up once by the init container of the StatefulSet, however often that runs', () => {
    const [manifest] = readManifests('deploy/kubernetes/embedded/statefulset.yaml');
    const [shell, option, script = ''] = manifest?.spec.template.spec.initContainers?.[0]?.command ?? [];
    expect([shell, option]).toEqual(['sh', '-c']);
    const env = { WAYPOST_DATA_DIR: join(volumes, 'embedded') };
    const first = image.shell(script, env);
    expect(first.status, first.stderr).toBe(0);
    expect(first.stdout).toContain('QSTASH_TOKEN=');
    const second = image.shell(script, env);
    expect(second.status, second.stderr).toBe(0);
    expect(second.stdout).not.toContain('QSTASH_TOKEN=');
  });
});
