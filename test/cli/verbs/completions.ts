/** The cases that every shell must complete: the words of the command line, of which the last is incomplete, and the result. */
import { giveCommand } from '../../support/waypost-command.ts';

export const COMPLETIONS: readonly (readonly [typed: readonly string[], offered: readonly string[]])[] = [
  [['d'], ['demo', 'dev', 'dlq', 'doctor']],
  [
    ['signing-keys', ''],
    ['rotate', 'show'],
  ],
  [['dlq', 'r'], ['retry']],
  [['dlq', 'retry', '--dr'], ['--dry-run']],
  [['dlq', 'list', '--dr'], []],
  // Without a verb it is the list.
  [['dlq', '--queue-name', 'a', '--ord'], ['--order']],
  [['publish', 'https://example.com/a', '--bo'], ['--body']],
  [['logs', '-f', '--fo'], ['--follow']],
  [['serve', '--metr'], ['--metrics-address']],
];

export async function scriptFor(shell: 'bash' | 'zsh' | 'fish'): Promise<string> {
  return (await giveCommand(['completion', shell])).stdout;
}
