/** Renders the table of settings for `--help`, for docs/settings.md, and for the output of the current configuration. */
import { defaultOf } from './parse.ts';
import { flagOf, isSecret, type Setting, type SettingValue, variableOf } from './setting.ts';
import { type Config, listSettings, type SettingName } from './table.ts';
import { formatBytes, formatDuration } from './units.ts';

/** Formats a value in the syntax of the setting. */
function format(setting: Setting, value: SettingValue): string {
  if (typeof value === 'object') return value.length === 0 ? 'none' : value.join(',');
  if (typeof value !== 'number') return String(value);
  if (setting.type === 'bytes') return formatBytes(value);
  return setting.type === 'duration' ? formatDuration(value) : String(value);
}

/** The settings that select a store, and the key that decrypts the store's signing keys. */
const STORE_SETTINGS: readonly SettingName[] = ['dataDir', 'databaseUrl', 'encryptionKey'];

/** The list of options in `waypost dev --help` and `waypost serve --help`. */
export function settingsHelp(dev: boolean): string {
  const lines: string[] = [];
  let group = '';
  for (const { name, setting } of listSettings()) {
    if (setting.group !== group) lines.push('', `${setting.group}:`);
    group = setting.group;
    const [usage, meaning] = optionOf(name, setting, dev);
    lines.push(`  ${usage}`, `      ${meaning}`);
  }
  return `${lines.join('\n').trimStart()}\n`;
}

/** The usage and meaning of each setting that the help of `command` lists. */
export function settingOptions(command: 'store' | 'serve' | 'dev'): Record<string, string> {
  const rows = listSettings().filter(({ name }) => command !== 'store' || STORE_SETTINGS.includes(name));
  return Object.fromEntries(rows.map(({ name, setting }) => optionOf(name, setting, command === 'dev')));
}

/** The list of options in the help of commands that use a store without serving requests. */
export function storeSettingsHelp(): string {
  const lines = Object.entries(settingOptions('store')).flatMap(([usage, meaning]) => [
    `  ${usage}`,
    `      ${meaning}`,
  ]);
  return `${lines.join('\n')}\n\nAll settings of "waypost serve" are accepted. On PostgreSQL, use the same database settings and worker timeout as\nthe workers; the others have no effect here.\n`;
}

function optionOf(name: SettingName, setting: Setting, dev: boolean): [usage: string, meaning: string] {
  const value = format(setting, defaultOf(setting, dev));
  const hint = value === '' ? '' : ` [${value}]`;
  return [`${flagOf(name)}${argumentOf(setting)}`, `${setting.meaning}${hint}`];
}

function argumentOf(setting: Setting): string {
  switch (setting.type) {
    case 'integer':
      return ' <number>';
    case 'choice':
      return ` <${setting.choices.join('|')}>`;
    case 'boolean':
      return '';
    case 'bytes':
    case 'duration':
    case 'list':
    case 'text':
      return ` <${setting.type === 'bytes' ? 'size' : setting.type}>`;
  }
}

/** The text of docs/settings.md. `npm run settings` writes the file, and a test compares the file with this text. */
export function settingsPage(): string {
  const lines = [
    '# Settings',
    '',
    'Every setting is a flag of `waypost dev` and `waypost serve` and an environment variable. The flag takes precedence.',
    'An empty variable counts as not set. `waypost config` prints the values in effect, without secrets.',
    '',
    '- **Durations**: `30s`, `10m`, `12h`, `14d`, `1d12h`, `250ms`, or a number of seconds.',
    '- **Sizes**: `65536`, `64KiB`, `1MiB`, or `1MB` for a million bytes.',
    '- **Lists**: separated by commas; `none` for an empty list.',
    '- **Booleans**: `--no-<name>` turns off a flag that is on by default.',
    '- **Secrets** can be read from a file: `WAYPOST_ENCRYPTION_KEY_FILE=/run/secrets/key`, `DATABASE_URL_FILE`.',
    '',
    '`npm run settings` generates this page from `src/config/table.ts`.',
  ];
  let group = '';
  for (const { name, setting } of listSettings()) {
    if (setting.group !== group) {
      lines.push(
        '',
        `## ${setting.group}`,
        '',
        '| Variable | Flag | Type | Default | Meaning |',
        '|---|---|---|---|---|',
      );
    }
    group = setting.group;
    const alias = setting.alias === undefined ? '' : ` or \`${setting.alias}\``;
    lines.push(
      `| \`${variableOf(name)}\`${alias} | \`${flagOf(name)}\` | ${typeOf(setting)} | ${defaultText(setting)} | ${setting.meaning} |`,
    );
  }
  return `${lines.join('\n')}\n`;
}

function typeOf(setting: Setting): string {
  if (setting.type === 'choice') return setting.choices.join(', ');
  if (!('min' in setting)) return isSecret(setting) ? 'text, secret' : setting.type;
  return `${setting.type}, ${format(setting, setting.min)} to ${format(setting, setting.max)}`;
}

function defaultText(setting: Setting): string {
  const value = format(setting, setting.default);
  if (!('defaultInDev' in setting) || setting.defaultInDev === undefined) return value === '' ? '' : `\`${value}\``;
  return `\`${value}\`; in \`waypost dev\`: \`${format(setting, setting.defaultInDev)}\``;
}

/** Lists one setting per line, as `WAYPOST_PORT=8080`. For a secret, the line only says whether the secret is set. */
export function describeConfig(config: Config): string {
  const lines = listSettings().map(({ name, setting }) => {
    const value = isSecret(setting) ? (config[name] === '' ? '' : '(secret, set)') : format(setting, config[name]);
    return `${variableOf(name)}=${value}`;
  });
  return `${lines.join('\n')}\n`;
}
