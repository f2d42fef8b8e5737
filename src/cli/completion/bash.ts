/**
 * Generates the completion script for bash. Bash shows candidates without descriptions. Without a candidate, bash
 * completes file names.
 */
import { type Candidate, type CompletionContext, kindsOf } from './contexts.ts';

export function bashScript(contexts: readonly CompletionContext[]): string {
  const cases = contexts.map(({ patterns, words: all }) => {
    const { words, options, valued } = kindsOf(all);
    const lists = `words='${textsOf(words)}' options='${textsOf(options)}' valued='${textsOf(valued)}'`;
    return `    ${patterns.map(patternOf).join(' | ')}) ${lists} ;;`;
  });
  return `# bash completion for waypost, made by "waypost completion bash"
_waypost() {
  local words= options= valued= place= current=\${COMP_WORDS[COMP_CWORD]}
  ((COMP_CWORD > 1)) && place=\${COMP_WORDS[1]}
  ((COMP_CWORD > 2)) && place+=" \${COMP_WORDS[2]}"
  case $place in
${cases.join('\n')}
  esac
  COMPREPLY=()
  [[ " $valued " == *" \${COMP_WORDS[COMP_CWORD - 1]} "* ]] && return
  [[ $current == -* ]] && words=$options
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o bashdefault -o default -F _waypost waypost
`;
}

export function textsOf(words: readonly Candidate[]): string {
  return words.map(({ text }) => text).join(' ');
}

/** Quotes `pattern`, except for a trailing `*`, which matches any text. */
export function patternOf(pattern: string): string {
  return pattern.endsWith('*') ? `'${pattern.slice(0, -1)}'*` : `'${pattern}'`;
}
