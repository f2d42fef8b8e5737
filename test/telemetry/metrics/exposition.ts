/** Parses the text format of Prometheus, and refuses what Prometheus would refuse. */

export interface Family {
  kind: string;
  help: string;
  /** By name with its labels as written, such as `a_bucket{le="1"}`. */
  samples: Map<string, number>;
}

export function parseExposition(text: string): Map<string, Family> {
  const families = new Map<string, Family>();
  if (!text.endsWith('\n')) throw new Error('the last line has no end');
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const [, comment, about = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (comment === 'HELP') {
      if (families.has(about)) throw new Error(`${about} comes twice`);
      families.set(about, { kind: '', help: rest, samples: new Map() });
    } else if (comment === 'TYPE') familyOf(families, about).kind = rest;
    else {
      const [, name = '', labels = '', value = ''] =
        /^([a-z_]+)(\{(?:[a-z]+="[^"\\]*",?)*\})? (-?[\d.e+-]+)$/.exec(line) ?? [];
      const family = familyOf(families, name);
      if (family.samples.has(name + labels)) throw new Error(`${name}${labels} comes twice`);
      family.samples.set(name + labels, Number(value));
    }
  }
  return families;
}

function familyOf(families: ReadonlyMap<string, Family>, name: string): Family {
  const family = families.get(name) ?? families.get(name.replace(/_(bucket|sum|count)$/, ''));
  if (!family) throw new Error(`"${name}" has no HELP before it`);
  return family;
}

/** The value of the sample that is written so. */
export function sampleOf(families: ReadonlyMap<string, Family>, sample: string): number | undefined {
  return familyOf(families, sample.replace(/\{.*/, '')).samples.get(sample);
}
