/** The type of a setting (a row of the table), and the names of its flag and variable. */
import type { Millis } from '../engine/model.ts';

interface SettingDescription {
  /** One sentence: the meaning of the setting, and the effect of a higher or lower value. */
  readonly meaning: string;
  /** Another variable for the setting, which other tools use. The setting's own variable takes precedence. */
  readonly alias?: string;
}

interface Range {
  readonly default: number;
  readonly min: number;
  readonly max: number;
}

/** `rule` describes `pattern` in words. */
type TextPattern = { readonly pattern?: never } | { readonly pattern: RegExp; readonly rule: string };

export type SettingRow = SettingDescription &
  (
    | ({ readonly type: 'integer' } & Range)
    /** In bytes. Written as `1048576`, `1KiB`, `64MiB`, `1GiB` (or the decimal units `kB`, `MB`, `GB`). */
    | ({ readonly type: 'bytes' } & Range)
    /** In milliseconds. Written as `90` (seconds), `250ms`, `30s`, `10m`, `12h`, `14d`, `1d12h`. */
    | ({ readonly type: 'duration' } & Range)
    | { readonly type: 'boolean'; readonly default: boolean; readonly defaultInDev?: boolean }
    | { readonly type: 'choice'; readonly choices: readonly string[]; readonly default: string }
    /** Written as texts separated by commas. */
    | { readonly type: 'list'; readonly default: readonly string[]; readonly defaultInDev?: readonly string[] }
    /**
     * An empty text means that the setting is not set. A secret is also read from the file in the variable `<name>_FILE`,
     * and is never printed.
     */
    | ({ readonly type: 'text'; readonly default: string; readonly secret?: true } & TextPattern)
  );

/** A row of the table, with the name of its group. */
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

/** Returns `WAYPOST_LOG_RETENTION` for `logRetentionMs`: without `Ms`, because each value has its own unit. */
export function variableOf(name: string): string {
  return `WAYPOST_${words(name).join('_').toUpperCase()}`;
}

/** Returns `--log-retention` for `logRetentionMs`. */
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
