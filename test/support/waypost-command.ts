/** How does a test give a command where no process is needed to prove anything? By calling what a process would call. */
import { runCommandLine } from '../../src/cli/command-line.ts';

export interface Answer {
  code: number;
  stdout: string;
  stderr: string;
}

/**
 * Runs a command that ends by itself, in this process: the same words, settings and exit codes for a fraction of the time. That
 * processes of their own carry them is seen where test/support/waypost-process.ts starts them. `env` is the whole environment. `reply`: what
 * somebody who sits at a terminal answers to each question; without one, nobody sits there. `input`: standard input.
 */
export async function giveCommand(
  args: readonly string[],
  env: Record<string, string> = {},
  reply?: string,
  input = '',
): Promise<Answer> {
  let stdout = '';
  let stderr = '';
  const code = await runCommandLine(args, {
    env,
    print: (text) => {
      stdout += text;
    },
    complain: (text) => {
      stderr += text;
    },
    readInput: async () => new TextEncoder().encode(input),
    isInteractive: false,
    color: false,
    ...(reply !== undefined && {
      ask: async (question: string, isSecret?: 'secret') => {
        stderr += isSecret ? `${question}(unseen)` : question;
        return reply;
      },
    }),
  });
  return { code, stdout, stderr };
}

/** The output of a command that must succeed. */
export async function outputOf(args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const { code, stdout, stderr } = await giveCommand(args, env);
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${stderr}`);
  return stdout;
}

/** Makes a project, and answers a token of it that may do everything. */
export async function projectWithToken(name: string, env: Record<string, string> = {}): Promise<string> {
  await outputOf(['projects', 'create', name], env);
  const made = await outputOf(['tokens', 'create', '--project', name, '--scope', 'full', '--json'], env);
  return (JSON.parse(made) as { token: string }).token;
}
