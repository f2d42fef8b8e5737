/**
 * Parses the configuration. Flags take precedence over variables, and variables over defaults. Reports all problems, not
 * only the first one.
 */
import { readFileSync } from 'node:fs';
import { parseDurationMs } from '../protocol/times/durations.ts';
import { type OptionRules, readArguments } from './arguments.ts';
import { flagOf, isSecret, type Setting, type SettingValue, variableOf } from './setting.ts';
import { type Config, listSettings, type SettingName } from './table.ts';
import { formatBytes, formatDuration, parseBytes } from './units.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface ParseOptions {
  /** Whether the command is `dev`, which has more permissive defaults for some settings. */
  dev?: boolean;
  /** Reads the file of a `…_FILE` variable. */
  readFile?: (path: string) => string;
}

/** All problems of the configuration, one sentence each. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** Parses `args` (`--port 8080`, `--port=8080`, `--memory`, `--no-verify-tls`) and `env`. Throws `ConfigError`. */
export function parseConfig(env: Environment, args: readonly string[], options: ParseOptions = {}): Config {
  const problems: string[] = [];
  const flags = readFlags(args, problems);
  const values: Partial<Record<SettingName, SettingValue>> = {};
  for (const { name, setting } of listSettings()) {
    const given = flags.get(name) ?? readVariable(name, setting, env, options.readFile ?? readTextFile, problems);
    values[name] = given === undefined ? defaultOf(setting, options.dev ?? false) : read(setting, given, problems);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.freeze(values as unknown as Config);
}

interface GivenValue {
  text: string;
  /** The flag or variable that gave the value, for messages about problems. */
  source: string;
}

/** The flags of all settings. */
export function settingFlags(): OptionRules {
  const known = new Map<string, 'needed' | 'attached'>();
  for (const { name, setting } of listSettings()) {
    const option = flagOf(name).slice(2);
    const isSwitch = setting.type === 'boolean';
    known.set(option, isSwitch ? 'attached' : 'needed');
    if (isSwitch) known.set(`no-${option}`, 'attached');
  }
  return known;
}

/** Parses the flags into values by setting. Reports every argument that belongs to no setting. */
function readFlags(args: readonly string[], problems: string[]): Map<SettingName, GivenValue> {
  const rows = new Map(listSettings().map((row) => [flagOf(row.name).slice(2), row]));
  const given = new Map<SettingName, GivenValue>();
  const found = readArguments(args, settingFlags());
  problems.push(...found.problems, ...found.words.map((word) => `${word}: not expected here`));
  for (const { name, flag, value = 'true' } of found.options) {
    const row = rows.get(name) ?? rows.get(name.replace(/^no-/, ''));
    if (row === undefined) continue;
    if (given.has(row.name)) problems.push(`${flag}: given more than once`);
    given.set(row.name, { text: rows.has(name) ? value : negate(value), source: flag });
  }
  return given;
}

function negate(text: string): string {
  return text === 'true' ? 'false' : text === 'false' ? 'true' : text;
}

function readVariable(
  name: SettingName,
  setting: Setting,
  env: Environment,
  readFile: (path: string) => string,
  problems: string[],
): GivenValue | undefined {
  for (const variable of variablesOf(name, setting)) {
    const value = valueIn(env, variable);
    const file = isSecret(setting) ? valueIn(env, `${variable}_FILE`) : undefined;
    if (value !== undefined && file !== undefined) problems.push(`${variable}: given together with ${variable}_FILE`);
    if (value !== undefined) return { text: value, source: variable };
    if (file !== undefined) return readSecret(`${variable}_FILE`, file, readFile, problems);
  }
  return undefined;
}

/** The variables of a setting: the setting's own variable, and the alias, which other programs also read. */
function variablesOf(name: SettingName, { alias }: Setting): string[] {
  return alias === undefined ? [variableOf(name)] : [variableOf(name), alias];
}

function valueIn(env: Environment, variable: string): string | undefined {
  const value = env[variable]?.trim();
  // An empty variable counts as not set, because compose files pass unset variables as empty. A value such as `tcp://…`
  // also counts as not set: a Kubernetes service named "waypost" sets WAYPOST_PORT=tcp://… in every pod of its namespace.
  return value === '' || value?.startsWith('tcp://') ? undefined : value;
}

function readSecret(
  variable: string,
  path: string,
  readFile: (path: string) => string,
  problems: string[],
): GivenValue | undefined {
  try {
    return { text: readFile(path).trim(), source: variable };
  } catch (error) {
    problems.push(`${variable}: cannot read ${path} (${(error as NodeJS.ErrnoException).code ?? 'failed'})`);
    return undefined;
  }
}

function readTextFile(path: string): string {
  return readFileSync(path, 'utf8');
}

/** The default of `setting`. The default of some settings is more permissive for `dev`. */
export function defaultOf(setting: Setting, dev: boolean): SettingValue {
  const value = dev && 'defaultInDev' in setting ? (setting.defaultInDev ?? setting.default) : setting.default;
  return Array.isArray(value) ? Object.freeze([...value]) : value;
}

/** Converts `given` to the type of the setting. The text of a secret never appears in a problem. */
function read(setting: Setting, given: GivenValue, problems: string[]): SettingValue {
  const value = convert(setting, given.text);
  if (typeof value !== 'object' || Array.isArray(value)) return value as SettingValue;
  const shown = isSecret(setting) ? 'this value' : JSON.stringify(given.text.slice(0, 100));
  problems.push(`${given.source}: ${(value as Refusal).must}, not ${shown}`);
  return setting.default;
}

interface Refusal {
  must: string;
}

function convert(setting: Setting, text: string): SettingValue | Refusal {
  switch (setting.type) {
    case 'integer':
      return within(setting, /^\d+$/.test(text) ? Number(text) : undefined, String, 'a whole number');
    case 'bytes':
      return within(setting, parseBytes(text), formatBytes, 'a size (65536, 64KiB)');
    case 'duration':
      return within(setting, parseDurationMs(text), formatDuration, 'a duration (30, 30s, 10m)');
    case 'boolean':
      if (['true', '1', 'yes', 'on'].includes(text)) return true;
      if (['false', '0', 'no', 'off'].includes(text)) return false;
      return { must: 'must be true or false' };
    case 'choice':
      return setting.choices.includes(text) ? text : { must: `must be one of ${setting.choices.join(', ')}` };
    case 'list':
      return readList(text);
    case 'text':
      return setting.pattern === undefined || setting.pattern.test(text) ? text : { must: setting.rule };
  }
}

function within(
  { min, max }: { min: number; max: number },
  value: number | undefined,
  format: (value: number) => string,
  kind: string,
): number | Refusal {
  if (value !== undefined && value >= min && value <= max) return value;
  return { must: `must be ${kind} from ${format(min)} to ${format(max)}` };
}

/** The text `none` stands for the empty list, because an empty variable selects the default. */
function readList(text: string): readonly string[] {
  if (text === 'none') return Object.freeze([]);
  const items = text.split(',').map((item) => item.trim());
  return Object.freeze(items.filter((item) => item !== ''));
}
