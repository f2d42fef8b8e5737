/** Parses a Dockerfile: the part of the grammar that ours uses. Anything else is an error, not a guess. */

export interface Instruction {
  keyword: string;
  /** What follows the keyword, in one line. */
  text: string;
}

export interface Stage {
  name: string;
  /** The image or stage it starts from, with the arguments' defaults in place. */
  from: string;
  instructions: Instruction[];
}

const KEYWORDS = new Set([
  ...['RUN', 'COPY', 'WORKDIR', 'ENV', 'USER', 'VOLUME', 'EXPOSE', 'STOPSIGNAL'],
  ...['HEALTHCHECK', 'ENTRYPOINT', 'CMD'],
]);

/** The stages in their order. Throws for what is no Dockerfile of the kind that we write. */
export function parseDockerfile(source: string): Stage[] {
  const defaults = new Map<string, string>();
  const stages: Stage[] = [];
  for (const { keyword, text } of instructionsOf(source)) {
    if (keyword === 'ARG') {
      const [, name = '', value = ''] = /^(\w+)=(\S+)$/.exec(text) ?? [];
      if (name === '' || stages.length > 0) throw new Error(`ARG ${text}: only with a default, before the first stage`);
      defaults.set(name, value);
    } else if (keyword === 'FROM') {
      const [, image = '', name = `${stages.length}`] = /^(\S+)(?: AS (\S+))?$/.exec(text) ?? [];
      const from = image.replaceAll(/\$\{(\w+)\}/g, (_all, variable: string) => defaults.get(variable) ?? '');
      if (from === '') throw new Error(`FROM ${text}: no image`);
      stages.push({ name, from, instructions: [] });
    } else {
      if (!KEYWORDS.has(keyword)) throw new Error(`${keyword}: not an instruction of our Dockerfile`);
      const stage = stages.at(-1);
      if (stage === undefined) throw new Error(`${keyword} comes before the first FROM`);
      stage.instructions.push({ keyword, text });
    }
  }
  return stages;
}

/** The texts of the instructions named `keyword`. */
export function textsOf(stage: Stage, keyword: string): string[] {
  return stage.instructions.filter((each) => each.keyword === keyword).map(({ text }) => text);
}

/** The words of `["node", "..."]`, without a shell. */
export function execForm(text: string): string[] {
  const words: unknown = JSON.parse(text);
  if (!Array.isArray(words) || words.some((word) => typeof word !== 'string')) throw new Error(`${text}: no list`);
  return words as string[];
}

function instructionsOf(source: string): Instruction[] {
  const lines = source
    .split('\n')
    .filter((line) => !/^\s*(#|$)/.test(line))
    .join('\n')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line !== '');
  return lines.map((line) => {
    const [, keyword = '', text = ''] = /^([A-Z]+)\s+(.+)$/.exec(line) ?? [];
    if (keyword === '') throw new Error(`"${line}" is no instruction`);
    return { keyword, text: text.trim() };
  });
}
