/** Generates the completion script for zsh, with descriptions. Without a candidate, zsh completes file names. */
import { patternOf, textsOf } from './bash.ts';
import { type Candidate, type CompletionContext, kindsOf, quoted, summaryOf } from './contexts.ts';

export function zshScript(contexts: readonly CompletionContext[]): string {
  const cases = contexts.map(({ patterns, words: all }) => {
    const { words, options, valued } = kindsOf(all);
    const lists = `found=(${described(words)}) flags=(${described(options)}) valued=(${textsOf(valued)})`;
    return `    (${patterns.map(patternOf).join('|')}) ${lists} ;;`;
  });
  return `#compdef waypost
# zsh completion for waypost, made by "waypost completion zsh"
_waypost() {
  local -a found flags valued
  local place=
  ((CURRENT > 2)) && place=$words[2]
  ((CURRENT > 3)) && place+=" $words[3]"
  case $place in
${cases.join('\n')}
  esac
  if (($valued[(Ie)$words[CURRENT-1]])); then
    _files
    return
  fi
  [[ $words[CURRENT] == -* ]] && found=($flags)
  _describe waypost found || _files
}
if [[ $funcstack[1] == _waypost ]]; then _waypost; else compdef _waypost waypost; fi
`;
}

function described(words: readonly Candidate[]): string {
  return words.map(({ text, meaning }) => quoted(`${text}:${summaryOf(meaning)}`)).join(' ');
}
