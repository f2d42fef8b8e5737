/**
 * Builds and runs an image without a container engine. Each stage of the Dockerfile is a folder that serves as its root. Its
 * instructions run there one by one, and the command of the image runs as a user who may write nowhere else.
 *
 * Differences from a real engine: `npm ci` contacts no registry, but copies the packages from where they are already installed;
 * and paths below the root are rewritten, since the folder is not the root of the process.
 */
import { type ChildProcess, execFileSync, type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { chmod } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { RUN_AS } from '../support/postgres/binaries.ts';
import { execForm, type Instruction, parseDockerfile, type Stage, textsOf } from './dockerfile.ts';

const CONTEXT = join(import.meta.dirname, '../..');
/** The folders of an image that our Dockerfile names. */
const ROOTED = /(?<=^|[\s=])\/(?=app|build|data|usr)/g;

interface Built {
  stage: Stage;
  root: string;
  env: Record<string, string>;
}

export class Image {
  readonly #built: Built;
  readonly #folder: string;
  readonly #node: string;

  private constructor(folder: string, node: string, built: Built) {
    this.#folder = folder;
    this.#node = node;
    this.#built = built;
  }

  /** Carries out the whole Dockerfile of this repository. */
  static async build(): Promise<Image> {
    const folder = mkdtempSync(join(tmpdir(), 'waypost-image-'));
    await chmod(folder, 0o755);
    const node = nodeForEveryone(folder);
    const stages = new Map<string, Built>();
    let last: Built | undefined;
    for (const stage of parseDockerfile(readFileSync(join(CONTEXT, 'Dockerfile'), 'utf8'))) {
      last = buildStage(stage, join(folder, stage.name), stages, node);
      stages.set(stage.name, last);
    }
    if (last === undefined) throw new Error('the Dockerfile has no stage');
    return new Image(folder, node, last);
  }

  /** Where `/` is. */
  get root(): string {
    return this.#built.root;
  }

  /** What `docker run <image> <args>` starts; `args` are those of CMD when there are none. */
  run(args: readonly string[], env: Record<string, string> = {}): ChildProcess {
    const { stage } = this.#built;
    const words = [...execForm(only(stage, 'ENTRYPOINT')), ...(args.length > 0 ? args : execForm(only(stage, 'CMD')))];
    return this.#start(words, env);
  }

  /** The exit code of the health check, as the engine would run it. */
  async healthCheck(env: Record<string, string> = {}): Promise<number | null> {
    const child = this.#start(execForm(only(this.#built.stage, 'HEALTHCHECK').replace(/^.* CMD /, '')), env);
    return new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
  }

  /** What a shell in the container says to `script`. */
  shell(script: string, env: Record<string, string> = {}): { status: number | null; stdout: string; stderr: string } {
    const { status, stdout, stderr } = spawnSync('sh', ['-c', script], { ...this.#asItsUser(env), encoding: 'utf8' });
    return { status, stdout, stderr };
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #start([program = '', ...args]: readonly string[], env: Record<string, string>): ChildProcess {
    if (program !== 'node') throw new Error(`${program} is not in the base image, as far as this test knows`);
    return spawn(
      this.#node,
      args.map((arg) => inRoot(arg, this.root)),
      { ...this.#asItsUser(env), stdio: ['ignore', 'pipe', 'pipe'] },
    );
  }

  #asItsUser(env: Record<string, string>) {
    const path = [join(this.root, 'usr/local/bin'), dirname(this.#node), process.env['PATH'] ?? ''].join(':');
    const options: SpawnOptions = {
      cwd: join(this.root, textsOf(this.#built.stage, 'WORKDIR').at(-1) ?? '/'),
      env: { PATH: path, ...this.#built.env, ...env },
      ...RUN_AS,
    };
    return options;
  }
}

/** The text of the only instruction named `keyword`. */
export function only(stage: Stage, keyword: string): string {
  const [text, ...more] = textsOf(stage, keyword);
  if (text === undefined || more.length > 0) throw new Error(`${keyword} is to be there once`);
  return text;
}

function buildStage(stage: Stage, root: string, stages: ReadonlyMap<string, Built>, node: string): Built {
  const built: Built = { stage, root, env: {} };
  let workdir = '/';
  mkdirSync(join(root, 'usr/local/bin'), { recursive: true });
  for (const instruction of stage.instructions) {
    if (instruction.keyword === 'WORKDIR') {
      workdir = instruction.text;
      mkdirSync(join(root, workdir), { recursive: true });
    } else {
      carryOut(instruction, built, join(root, workdir), stages, node);
    }
  }
  return built;
}

function carryOut(
  { keyword, text }: Instruction,
  { root, env }: Built,
  cwd: string,
  stages: ReadonlyMap<string, Built>,
  node: string,
): void {
  if (keyword === 'COPY') copy(text, cwd, stages);
  else if (keyword === 'ENV') {
    for (const pair of text.split(/\s+/)) {
      const [name = '', value = ''] = pair.split('=');
      env[name] = inRoot(value, root);
    }
  } else if (keyword === 'RUN' && text.startsWith('npm ci')) install(text, cwd);
  else if (keyword === 'RUN') {
    const owner = RUN_AS ?? { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
    const script = inRoot(text, root).replace('-o 1000 -g 1000', `-o ${owner.uid} -g ${owner.gid}`);
    execFileSync('sh', ['-euc', script], {
      cwd,
      env: { ...process.env, PATH: `${dirname(node)}:${process.env['PATH']}` },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  }
}

function copy(text: string, cwd: string, stages: ReadonlyMap<string, Built>): void {
  const words = text.split(/\s+/);
  const from = /^--from=(\S+)$/.exec(words[0] ?? '')?.[1];
  const sources = words.slice(from === undefined ? 0 : 1, -1);
  const target = join(cwd, words.at(-1) ?? '');
  const isFolder = words.at(-1)?.endsWith('/') === true;
  for (const source of sources) {
    if (from === undefined && !isInContext(source)) throw new Error(`.dockerignore keeps ${source} out of the image`);
    const base = from === undefined ? CONTEXT : stages.get(from)?.root;
    if (base === undefined) throw new Error(`there is no stage ${from}`);
    const path = join(base, source);
    // As COPY does: of a folder what is in it, of a file the file.
    const isFile = statSync(path).isFile();
    cpSync(path, isFile && isFolder ? join(target, basename(path)) : target, { recursive: true });
  }
}

/** Whether .dockerignore lets `path` into the build: it leaves out everything but what it names. */
function isInContext(path: string): boolean {
  const rules = readFileSync(join(CONTEXT, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  if (rules[0] !== '*' || rules.slice(1).some((rule) => !/^![\w./-]+$/.test(rule))) {
    throw new Error('.dockerignore names more than what is let in');
  }
  return rules.slice(1).some((rule) => path === rule.slice(1) || path.startsWith(`${rule.slice(1)}/`));
}

/** The packages that `npm ci` with these flags installs, by what package-lock.json says of each. */
function install(text: string, cwd: string): void {
  const lock = JSON.parse(readFileSync(join(cwd, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: true; optional?: true; devOptional?: true; link?: true }>;
  };
  if (!existsSync(join(cwd, 'package.json'))) throw new Error('npm ci needs package.json as well');
  if (!text.includes('--omit=dev')) {
    symlinkSync(join(CONTEXT, 'node_modules'), join(cwd, 'node_modules'));
    return;
  }
  if (!text.includes('--omit=optional')) throw new Error(`${text}: this test knows no such installation`);
  for (const [path, { dev, optional, devOptional, link }] of Object.entries(lock.packages)) {
    // A package of this repository is a link to its folder, and left out where that is not there.
    if (!path.startsWith('node_modules/') || link || dev || optional || devOptional) continue;
    const nested = join(CONTEXT, path, 'node_modules');
    cpSync(join(CONTEXT, path), join(cwd, path), { recursive: true, filter: (source) => source !== nested });
  }
}

/** `text` with what lies below the image's root below `root`. */
function inRoot(text: string, root: string): string {
  return text.replaceAll(ROOTED, `${root}/`);
}

/** A program `node` that the image's user may run too: a copy where that one may not read the installed one. */
function nodeForEveryone(folder: string): string {
  const runs = spawnSync(process.execPath, ['--version'], { ...RUN_AS }).status === 0;
  if (runs) return process.execPath;
  const copied = join(folder, 'bin/node');
  mkdirSync(dirname(copied));
  copyFileSync(process.execPath, copied);
  return copied;
}
