/** Finds the command that each deployment file starts, for every kind of file. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { parseConfig } from '../../src/config/parse.ts';
import type { Config } from '../../src/config/table.ts';

export const ROOT = join(import.meta.dirname, '../..');

/** A file that starts `waypost serve` or a command beside it. */
export interface Workload {
  /** File and name in it, for messages. */
  name: string;
  args: string[];
  /** Variables of the settings; where they come from a secret or a file of the operator's an acceptable value. */
  env: Record<string, string>;
  /** From the stop signal, or what comes before it, until the process is killed. */
  stopLimitS: number;
  /** Of that, how long the signal is held back. */
  pauseBeforeSignalS: number;
  memoryLimitBytes: number | undefined;
}

interface ComposeService {
  entrypoint?: string[];
  command: string[];
  environment: Record<string, string>;
  stop_grace_period: string;
  mem_limit: string;
  image: string;
  volumes?: string[];
  read_only?: boolean;
  cap_drop?: string[];
  security_opt?: string[];
  deploy?: { replicas: number };
}

export interface Compose {
  services: Record<string, ComposeService>;
  volumes: Record<string, unknown>;
}

interface Container {
  name: string;
  image: string;
  args?: string[];
  command?: string[];
  env: { name: string; value?: string; valueFrom?: { secretKeyRef: { name: string; key: string } } }[];
  resources: { limits: { memory: string } };
  securityContext: Record<string, unknown>;
  lifecycle?: { preStop: { exec: { command: string[] } } };
  startupProbe?: Probe;
  livenessProbe?: Probe;
  readinessProbe?: Probe;
  ports?: { name: string; containerPort: number }[];
  volumeMounts?: { name: string; mountPath: string }[];
}

interface Probe {
  httpGet: { path: string; port: string };
}

export interface Manifest {
  kind: string;
  metadata: { name: string };
  stringData?: Record<string, string>;
  spec: {
    selector?: { matchLabels?: Record<string, string> } & Record<string, unknown>;
    template: {
      metadata?: { labels: Record<string, string> };
      spec: {
        terminationGracePeriodSeconds?: number;
        securityContext: { runAsNonRoot: boolean };
        automountServiceAccountToken: boolean;
        initContainers?: Container[];
        containers: Container[];
        volumes?: { name: string }[];
      };
    };
    volumeClaimTemplates?: { metadata: { name: string } }[];
    ports?: { targetPort: string }[];
    replicas?: number;
  };
}

export function readText(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

export function readCompose(path: string): Compose {
  return parse(readText(path), { strict: true, uniqueKeys: true }) as Compose;
}

/** All manifests of a file. Throws for what is no YAML, or says a key twice. */
export function readManifests(path: string): Manifest[] {
  return parseAllDocuments(readText(path), { strict: true, uniqueKeys: true }).map((document) => {
    const [error] = [...document.errors, ...document.warnings];
    if (error !== undefined) throw error;
    return document.toJS() as Manifest;
  });
}

/** A value that a setting accepts, in place of what only the operator knows. */
const GIVEN_BY_OPERATOR: Readonly<Record<string, string>> = {
  POSTGRES_PASSWORD: '0123456789abcdef',
  WAYPOST_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64'),
  DATABASE_URL: 'postgres://waypost:password@postgres.example.com:5432/waypost?sslmode=verify-full',
};

export function composeWorkload(path: string, service: string): Workload {
  const { command, environment, stop_grace_period, mem_limit } = serviceOf(readCompose(path), service);
  const env = Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [name, interpolated(String(value))]),
  );
  return {
    name: `${path}: ${service}`,
    args: command,
    env,
    stopLimitS: secondsOf(stop_grace_period),
    pauseBeforeSignalS: 0,
    memoryLimitBytes: bytesOf(mem_limit),
  };
}

export function serviceOf(compose: Compose, name: string): ComposeService {
  const service = compose.services[name];
  if (service === undefined) throw new Error(`there is no service ${name}`);
  return service;
}

/** The server that a manifest runs, as a Deployment or a StatefulSet. */
export function podWorkload(path: string, manifest: Manifest): Workload {
  const { terminationGracePeriodSeconds = 30, containers } = manifest.spec.template.spec;
  const [container] = containers;
  if (container === undefined) throw new Error(`${path} has no container`);
  const pause = container.lifecycle?.preStop.exec.command ?? ['sleep', '0'];
  if (pause[0] !== 'sleep') throw new Error(`${path}: the pause before the signal is no "sleep"`);
  return {
    name: `${path}: ${manifest.kind} ${manifest.metadata.name}`,
    args: container.args ?? [],
    env: Object.fromEntries(
      container.env.map(({ name, value }) => [name, value ?? GIVEN_BY_OPERATOR[name] ?? 'not known']),
    ),
    stopLimitS: terminationGracePeriodSeconds,
    pauseBeforeSignalS: Number(pause[1]),
    memoryLimitBytes: bytesOf(container.resources.limits.memory),
  };
}

/** The settings that a workload starts with. Throws for a value that the server would refuse. */
export function configOf({ env, args }: Workload): Config {
  return parseConfig(env, args.slice(1));
}

/** `${NAME:?why}` as docker compose replaces it. */
function interpolated(text: string): string {
  return text.replaceAll(/\$\{(\w+):\?[^}]*\}/g, (_all, name: string) => GIVEN_BY_OPERATOR[name] ?? '');
}

function secondsOf(text: string): number {
  const [, count = '', unit = ''] = /^(\d+)(s|m)$/.exec(text) ?? [];
  if (unit === '') throw new Error(`${text} is no duration`);
  return Number(count) * (unit === 'm' ? 60 : 1);
}

function bytesOf(text: string): number {
  const [, count = '', unit = ''] = /^(\d+)(m|g|Mi|Gi)$/.exec(text) ?? [];
  if (unit === '') throw new Error(`${text} is no size`);
  return Number(count) * (unit.startsWith('g') || unit === 'Gi' ? 1024 ** 3 : 1024 ** 2);
}
