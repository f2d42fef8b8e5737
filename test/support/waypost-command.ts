/** Runs commands of the command line in the test's own process. */
import { runCommandLine } from '../../src/cli/command-line.ts';

export interface CommandResult {
  code: number;
  stdout: string;
  stderr: string;
}

/**
 * Runs a command that ends by itself: with the same output and exit codes as a child process, but much faster. The tests that
 * use test/support/waypost-process.ts prove that child processes behave the same. `env` is the whole environment. `reply`: the
 * user's answer to each question; without it, there is no terminal. `input`: standard input.
 */
export async function giveCommand(
  args: readonly string[],
  env: Record<string, string> = {},
  reply?: string,
  input = '',
): Promise<CommandResult> {
  let stdout = '';
  let stderr = '';
  const code = await runCommandLine(args, {
    env,
    print: (text) => {
      stdout += text;
    },
    printError: (text) => {
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

/** Creates a project, and returns a token with full access to it. */
export async function projectWithToken(name: string, env: Record<string, string> = {}): Promise<string> {
  await outputOf(['projects', 'create', name], env);
  const made = await outputOf(['tokens', 'create', '--project', name, '--scope', 'full', '--json'], env);
  return (JSON.parse(made) as { token: string }).token;
}
