/** Creates projects with the commands of an operator. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const CLI = fileURLToPath(new URL('../bin/waypost.js', import.meta.url));

/** Creates `count` projects in a new store and returns a token of each. `env` selects a database outside the folder. */
export async function createProjects(
  dataDir: string,
  count: number,
  env: Record<string, string> = {},
): Promise<string[]> {
  const first = await tokenFrom(['init', '--data-dir', dataDir], env);
  return [first, ...(await addProjects(dataDir, count - 1, env))];
}

/** Adds `count` projects to a store that has one project, and returns a token of each. */
export async function addProjects(dataDir: string, count: number, env: Record<string, string>): Promise<string[]> {
  const tokens: string[] = [];
  while (tokens.length < count) {
    const name = `project-${tokens.length + 1}`;
    await runCommand(['projects', 'create', name, '--data-dir', dataDir], env);
    tokens.push(
      await tokenFrom(['tokens', 'create', '--project', name, '--scope', 'full', '--data-dir', dataDir], env),
    );
  }
  return tokens;
}

async function tokenFrom(args: readonly string[], env: Record<string, string>): Promise<string> {
  return /^QSTASH_TOKEN=(.*)$/m.exec(await runCommand(args, env))?.[1] ?? '';
}

/** `waypost doctor` prints two kilobytes per cell. */
const OUTPUT_MAX = 16 * 2 ** 20;

/** Runs a command of the command line and returns its output. */
export async function runCommand(args: readonly string[], env: Record<string, string>): Promise<string> {
  const options = { env: { ...process.env, ...env }, maxBuffer: OUTPUT_MAX };
  return (await promisify(execFile)(process.execPath, [CLI, ...args], options)).stdout;
}
