/** Completion for bash: words only, since bash shows no meanings. Where nothing fits, it completes names of files. */
import { kindsOf, type Place, type Word } from './places.ts';

export function bashScript(places: readonly Place[]): string {
  const cases = places.map(({ patterns, words: all }) => {
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

export function textsOf(words: readonly Word[]): string {
  return words.map(({ text }) => text).join(' ');
}

/** Quoted, except for the star that stands for any text. */
export function patternOf(pattern: string): string {
  return pattern.endsWith('*') ? `'${pattern.slice(0, -1)}'*` : `'${pattern}'`;
}
