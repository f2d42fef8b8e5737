import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { describeConfig, settingsHelp, settingsPage } from '../../src/config/page.ts';
import { defaultOf, parseConfig } from '../../src/config/parse.ts';
import { flagOf, variableOf } from '../../src/config/setting.ts';
import { listSettings } from '../../src/config/table.ts';

describe('the table of settings', () => {
  it('is what docs/settings.md shows (npm run settings writes it)', () => {
    const page = readFileSync(new URL('../../docs/settings.md', import.meta.url), 'utf8');
    expect(page).toBe(settingsPage());
  });

  it('is all in the help', () => {
    for (const { name } of listSettings()) expect(settingsHelp(false)).toContain(`  ${flagOf(name)}`);
    expect(settingsHelp(true)).toContain('[loopback]');
  });

  it('has a different variable for each setting', () => {
    const variables = listSettings().map(({ name }) => variableOf(name));
    expect(new Set(variables).size).toBe(variables.length);
  });

  it('has defaults within their own bounds', () => {
    for (const { name, setting } of listSettings()) {
      if (!('min' in setting)) continue;
      expect(setting.default, name).toBeGreaterThanOrEqual(setting.min);
      expect(setting.default, name).toBeLessThanOrEqual(setting.max);
    }
  });
});

describe('describeConfig', () => {
  it('shows what would have to be set to get the same again', () => {
    const config = parseConfig({}, [
      '--port',
      '9000',
      '--log-retention',
      '36h',
      '--allow-destinations',
      'loopback,10.0.0.0/8',
    ]);
    const env = Object.fromEntries(
      describeConfig(config)
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/=(.*)/s).slice(0, 2)),
    );
    expect(env['WAYPOST_LOG_RETENTION']).toBe('1d12h');
    expect(parseConfig(env, [])).toEqual(config);
  });

  it('hides secrets', () => {
    const config = parseConfig({ DATABASE_URL: 'sqlite:/secret/path' }, []);
    expect(describeConfig(config)).toContain('WAYPOST_DATABASE_URL=(secret, set)\n');
    expect(describeConfig(config)).not.toContain('/secret/path');
  });

  it('prints every default in a form that is read back as the same', () => {
    for (const { name, setting } of listSettings()) {
      expect(parseConfig({}, [])[name]).toEqual(defaultOf(setting, false));
    }
  });
});
