/** Generates the completion script for fish, with descriptions. Values are completed as file names. */
import { type Candidate, type CompletionContext, quoted, summaryOf } from './contexts.ts';

export function fishScript(contexts: readonly CompletionContext[]): string {
  const lines = contexts.flatMap(({ patterns, words }) => {
    const when = quoted(`__waypost_at ${patterns.map((pattern) => `"${pattern}"`).join(' ')}`);
    return words.map((word) => `complete -c waypost -n ${when} ${kindOf(word)} -d ${quoted(summaryOf(word.meaning))}`);
  });
  return `# fish completion for waypost, made by "waypost completion fish"
function __waypost_at
  set -l before (commandline -opc)
  for pattern in $argv
    string match -q -- $pattern "$before[2..3]" && return
  end
  return 1
end
${lines.join('\n')}
`;
}

function kindOf({ text, hasValue }: Candidate): string {
  const value = hasValue ? ' -r' : '';
  if (text.startsWith('--')) return `-l ${text.slice(2)}${value}`;
  return text.startsWith('-') ? `-s ${text.slice(1)}${value}` : `-f -a ${text}`;
}
