/** Checks that the files for containers, Kubernetes and systemd set what the server needs, and nothing that it does not know. */
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { describedRoutes } from '../../src/api/routes.ts';
import { variableOf } from '../../src/config/setting.ts';
import { listSettings } from '../../src/config/table.ts';
import { readUnit, unitWorkload } from './unit.ts';
import {
  composeWorkload,
  configOf,
  podWorkload,
  ROOT,
  readCompose,
  readManifests,
  readText,
  serviceOf,
} from './workloads.ts';

const KUBERNETES = 'deploy/kubernetes';
const UNIT = 'deploy/systemd/waypost.service';
const MIB = 1024 ** 2;
/** A worker that is busy, without the bodies that its settings bound (docs/performance.md). */
const PROCESS_BYTES = 400 * MIB;
/** An attempt that waits for its answer, without its body. */
const SILENT_ATTEMPT_BYTES = 20 * 1024;
/** The last answers, the database and the end of the process. */
const END_S = 5;

const manifestFiles = globSync(`${KUBERNETES}/*/*.yaml`, { cwd: ROOT }).filter(
  (path) => basename(path) !== 'kustomization.yaml',
);
const manifests = manifestFiles.flatMap((path) => readManifests(path).map((manifest) => ({ path, manifest })));
const servers = manifests.filter(({ manifest }) => ['Deployment', 'StatefulSet'].includes(manifest.kind));
const pods = manifests.filter(({ manifest }) => ['Deployment', 'StatefulSet', 'Job'].includes(manifest.kind));

const workloads = [
  composeWorkload('compose.yaml', 'waypost'),
  composeWorkload('compose.postgres.yaml', 'waypost'),
  ...servers.map(({ path, manifest }) => podWorkload(path, manifest)),
  unitWorkload(UNIT),
];

describe.each(workloads)('$name', (workload) => {
  it('serves', () => {
    expect(workload.args[0]).toBe('serve');
  });

  it('sets only what there is, to values that the server takes', () => {
    const known = new Set(
      listSettings().flatMap(({ name, setting }) => [variableOf(name), ...(setting.alias ? [setting.alias] : [])]),
    );
    const named = Object.keys(workload.env).filter((variable) => variable !== 'NODE_ENV');
    expect(named.filter((variable) => !known.has(variable))).toEqual([]);
    expect(configOf(workload)).toBeDefined();
  });

  it('gives a drain its whole time before it kills', () => {
    const drainS = configOf(workload).drainLimitMs / 1000;
    expect(workload.stopLimitS).toBeGreaterThanOrEqual(workload.pauseBeforeSignalS + drainS + END_S);
  });

  it('has memory for what its settings let in', () => {
    if (workload.memoryLimitBytes === undefined) return expect(workload.name).toContain(UNIT);
    const { requestMemoryBytesMax, inFlightBytesMax, silentMax } = configOf(workload);
    // Bodies that are sent, and as many of the answers.
    expect(workload.memoryLimitBytes).toBeGreaterThanOrEqual(
      PROCESS_BYTES + requestMemoryBytesMax + 2 * inFlightBytesMax + silentMax * SILENT_ATTEMPT_BYTES,
    );
  });
});

describe('memory settings of the process', () => {
  it('are those that the command gives itself, and no others', () => {
    const settings = /MALLOC_|--max-semi-space-size/;
    const paths = ['Dockerfile', 'package.json', 'compose.yaml', 'compose.postgres.yaml', UNIT, ...manifestFiles];
    expect(readText('bin/waypost.js')).toMatch(settings);
    for (const path of paths) expect(readText(path), path).not.toMatch(settings);
  });

  it('are not passed by: everything starts the image or the command', () => {
    for (const path of ['compose.yaml', 'compose.postgres.yaml'])
      expect(serviceOf(readCompose(path), 'waypost').entrypoint).toBeUndefined();
    for (const { manifest } of servers) expect(manifest.spec.template.spec.containers[0]?.command).toBeUndefined();
    expect(readUnit(UNIT).get('ExecStart')).toBe('/usr/local/bin/waypost serve');
  });
});

describe('compose files', () => {
  it.each(['compose.yaml', 'compose.postgres.yaml'])('%s opens no port to other machines', (path) => {
    const ports = Object.values(readCompose(path).services).flatMap((service) =>
      'ports' in service ? (service.ports as string[]) : [],
    );
    expect(ports).toHaveLength(1);
    expect(ports[0]).toMatch(/^127\.0\.0\.1:/);
  });

  it.each(['compose.yaml', 'compose.postgres.yaml'])('%s lets the server do no more than it needs', (path) => {
    expect(serviceOf(readCompose(path), 'waypost')).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    });
  });

  it.each(['compose.yaml', 'compose.postgres.yaml'])('%s mounts only what is there', (path) => {
    const { services, volumes } = readCompose(path);
    const sources = Object.values(services).flatMap(({ volumes: mounts = [] }) => mounts.map((m) => m.split(':')[0]));
    for (const source of sources) {
      expect(source?.startsWith('./') ? existsSync(join(ROOT, source)) : Object.keys(volumes)).toSatisfy(
        (there: boolean | string[]) => there === true || (Array.isArray(there) && there.includes(source ?? '')),
      );
    }
  });

  it('with PostgreSQL it starts two workers, and the balancer takes the largest batch', () => {
    const compose = readCompose('compose.postgres.yaml');
    expect(serviceOf(compose, 'waypost').deploy?.replicas).toBe(2);
    const nginx = readText('deploy/compose/nginx.conf');
    const bodyMax = Number(/client_max_body_size (\d+)m;/.exec(nginx)?.[1]) * MIB;
    expect(bodyMax).toBeGreaterThan(configOf(composeWorkload('compose.postgres.yaml', 'waypost')).batchBytesMax);
    expect(nginx).toContain('server waypost:8080 resolve');
  });
});

describe('Kubernetes manifests', () => {
  it.each(pods)('$path runs without rights, and without a file system to write on', ({ manifest }) => {
    const {
      securityContext,
      automountServiceAccountToken,
      containers,
      initContainers = [],
    } = manifest.spec.template.spec;
    expect(securityContext.runAsNonRoot).toBe(true);
    expect(automountServiceAccountToken).toBe(false);
    for (const container of [...containers, ...initContainers]) {
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
    }
  });

  it.each(servers)('$path asks whether it lives and whether it is ready, where the server answers', ({ manifest }) => {
    const [container] = manifest.spec.template.spec.containers;
    expect(container?.ports).toEqual([{ name: 'http', containerPort: 8080 }]);
    for (const probe of [container?.startupProbe, container?.livenessProbe]) {
      expect(probe?.httpGet).toEqual({ path: '/healthz', port: 'http' });
    }
    expect(container?.readinessProbe?.httpGet).toEqual({ path: '/readyz', port: 'http' });
    expect(describedRoutes().map(({ path }) => path)).toEqual(expect.arrayContaining(['/healthz', '/readyz']));
  });

  it.each(manifests)('$path selects the pods that there are', ({ path, manifest }) => {
    if (!('selector' in (manifest.spec ?? {}))) return expect(['Secret', 'Job']).toContain(manifest.kind);
    const wanted = manifest.spec.selector?.matchLabels ?? manifest.spec.selector;
    const labels = servers
      .filter((server) => dirname(server.path) === dirname(path))
      .map((server) => server.manifest.spec.template.metadata?.labels);
    expect(labels).toEqual([expect.objectContaining(wanted ?? {})]);
  });

  it.each(pods)('$path mounts only volumes that it has', ({ manifest }) => {
    const { containers, initContainers = [], volumes = [] } = manifest.spec.template.spec;
    const claims = manifest.spec.volumeClaimTemplates ?? [];
    const there = [...volumes.map(({ name }) => name), ...claims.map(({ metadata }) => metadata.name)];
    const mounted = [...containers, ...initContainers].flatMap(({ volumeMounts = [] }) =>
      volumeMounts.map(({ name }) => name),
    );
    expect(mounted.filter((name) => !there.includes(name))).toEqual([]);
  });

  it('takes from the secret what the example has', () => {
    const example = manifests.find(({ manifest }) => manifest.kind === 'Secret')?.manifest;
    const wanted = pods.flatMap(({ manifest }) =>
      manifest.spec.template.spec.containers.flatMap(({ env }) =>
        env.flatMap(({ valueFrom }) => (valueFrom ? [valueFrom.secretKeyRef] : [])),
      ),
    );
    expect(wanted).not.toEqual([]);
    for (const { name, key } of wanted) {
      expect(name).toBe(example?.metadata.name);
      expect(Object.keys(example?.stringData ?? {})).toContain(key);
    }
  });

  it('has one server a file, and more than one worker only on PostgreSQL', () => {
    const replicas = Object.fromEntries(servers.map(({ path, manifest }) => [path, manifest.spec.replicas]));
    expect(replicas).toEqual({
      [`${KUBERNETES}/embedded/statefulset.yaml`]: 1,
      [`${KUBERNETES}/postgres/deployment.yaml`]: 2,
    });
  });

  it.each(['postgres', 'embedded'])('%s: applies every file but those that are applied by hand', (folder) => {
    const kustomization = parse(readText(`${KUBERNETES}/${folder}/kustomization.yaml`)) as {
      resources: string[];
      images: { name: string; newTag: string }[];
    };
    const byHand = new Set(['kustomization.yaml', 'init.yaml', 'secret.example.yaml']);
    const applied = readdirSync(join(ROOT, KUBERNETES, folder)).filter((name) => !byHand.has(name));
    expect(kustomization.resources.toSorted()).toEqual(applied.toSorted());
    const { version } = JSON.parse(readText('package.json')) as { version: string };
    expect(kustomization.images).toMatchObject([{ name: 'waypost', newTag: version }]);
    if (folder === 'postgres') expect(readText(`${KUBERNETES}/postgres/init.yaml`)).toContain(`waypost:${version}`);
  });
});

describe('the systemd unit', () => {
  const unit = readUnit(UNIT);

  it('starts again after a crash, but not with settings that the server refuses', () => {
    expect(unit.get('Restart')).toBe('on-failure');
    expect(unit.get('RestartPreventExitStatus')).toBe('2'); // as src/cli/command.ts has it for wrong settings
    expect(unit.get('StartLimitIntervalSec')).toBe('0');
  });

  it('lets the server write in its data folder alone, which is its own', () => {
    expect(unit.get('ProtectSystem')).toBe('strict');
    expect(unit.get('NoNewPrivileges')).toBe('yes');
    const { dataDir } = configOf(unitWorkload(UNIT));
    expect(dataDir).toBe(`/var/lib/${unit.get('StateDirectory')}`);
  });

  const analyze = spawnSync('systemd-analyze', ['--version'], { encoding: 'utf8' });
  const obstacle = analyze.status === 0 ? undefined : 'there is no systemd-analyze';

  it.skipIf(obstacle !== undefined)(`is one that systemd takes${obstacle ? ` (skipped: ${obstacle})` : ''}`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'waypost-unit-'));
    try {
      // The program is not installed here.
      const path = join(folder, 'waypost.service');
      writeFileSync(path, readText(UNIT).replace(/^ExecStart=\S+/m, `ExecStart=${process.execPath}`));
      const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', path], { encoding: 'utf8' });
      expect(`${stdout}${stderr}`).toBe('');
      expect(status).toBe(0);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
