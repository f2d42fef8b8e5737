/** A setting: one row of the table, and the names that it is given under. */
import type { Millis } from '../engine/model.ts';

interface About {
  /** One sentence: its meaning, and the effect of a higher or lower value. */
  readonly meaning: string;
  /** Also read from this variable, which other tools set by convention; the setting's own variable wins. */
  readonly alias?: string;
}

interface Bounded {
  readonly default: number;
  readonly min: number;
  readonly max: number;
}

/** `rule` describes `pattern` in words. */
type Patterned = { readonly pattern?: never } | { readonly pattern: RegExp; readonly rule: string };

export type SettingRow = About &
  (
    | ({ readonly type: 'integer' } & Bounded)
    /** In bytes. Given as `1048576`, `1KiB`, `64MiB`, `1GiB` (or `kB`, `MB`, `GB`, which count in thousands). */
    | ({ readonly type: 'bytes' } & Bounded)
    /** In milliseconds. Given as `90`, which is seconds, `250ms`, `30s`, `10m`, `12h`, `14d`, `1d12h`. */
    | ({ readonly type: 'duration' } & Bounded)
    | { readonly type: 'boolean'; readonly default: boolean; readonly defaultInDev?: boolean }
    | { readonly type: 'choice'; readonly choices: readonly string[]; readonly default: string }
    /** Given separated by commas. */
    | { readonly type: 'list'; readonly default: readonly string[]; readonly defaultInDev?: readonly string[] }
    /** Empty when not set. Secrets are also read from the file that `<name>_FILE` names, and never printed. */
    | ({ readonly type: 'text'; readonly default: string; readonly secret?: true } & Patterned)
  );

/** A row with the name of the table that it stands in. */
export type Setting = SettingRow & { readonly group: string };

export type SettingRows = Readonly<Record<string, SettingRow>>;

export function grouped<Rows extends SettingRows>(
  group: string,
  rows: Rows,
): { readonly [Name in keyof Rows]: Rows[Name] & { readonly group: string } } {
  return Object.fromEntries(Object.entries(rows).map(([name, row]) => [name, { ...row, group }])) as never;
}

export type SettingValue = string | number | boolean | readonly string[];

/** The type of a parsed setting. */
export type ValueOf<S extends Setting> = S extends { type: 'integer' | 'bytes' }
  ? number
  : S extends { type: 'duration' }
    ? Millis
    : S extends { type: 'boolean' }
      ? boolean
      : S extends { type: 'choice'; choices: readonly (infer Choice)[] }
        ? Choice
        : S extends { type: 'list' }
          ? readonly string[]
          : string;

/** `logRetentionMs` is given as `WAYPOST_LOG_RETENTION`, since the value carries its own unit. */
export function variableOf(name: string): string {
  return `WAYPOST_${words(name).join('_').toUpperCase()}`;
}

/** `logRetentionMs` is given as `--log-retention`. */
export function flagOf(name: string): string {
  return `--${words(name).join('-')}`;
}

function words(name: string): string[] {
  return name
    .replace(/Ms$/, '')
    .replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    .split('-');
}

export function isSecret(setting: Setting): boolean {
  return setting.type === 'text' && setting.secret === true;
}
