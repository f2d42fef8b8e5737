/** Projects on a data folder, made as an operator makes them. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const CLI = fileURLToPath(new URL('../bin/waypost.js', import.meta.url));

/** A token of each of `count` projects. `env` says which database they are made in, if not in the folder. */
export async function makeProjects(
  dataDir: string,
  count: number,
  env: Record<string, string> = {},
): Promise<string[]> {
  const tokenFrom = async (...words: string[]): Promise<string> => {
    const stdout = await operate([...words, '--data-dir', dataDir], env);
    return /^QSTASH_TOKEN=(.*)$/m.exec(stdout)?.[1] ?? '';
  };
  const tokens = [await tokenFrom('init')];
  while (tokens.length < count) {
    const name = `project-${tokens.length}`;
    await tokenFrom('projects', 'create', name);
    tokens.push(await tokenFrom('tokens', 'create', '--project', name, '--scope', 'full'));
  }
  return tokens;
}

/** `waypost doctor` says two kilobytes of each cell. */
const OUTPUT_MAX = 16 * 2 ** 20;

/** Runs a command as an operator types it, and answers what it prints. */
export async function operate(words: readonly string[], env: Record<string, string>): Promise<string> {
  const options = { env: { ...process.env, ...env }, maxBuffer: OUTPUT_MAX };
  return (await promisify(execFile)(process.execPath, [CLI, ...words], options)).stdout;
}
