import { describe, expect, it } from 'vitest';
import { ConfigError, type Environment, parseConfig } from '../../src/config/parse.ts';

const KEY = Buffer.alloc(32, 7).toString('base64');

function problemsOf(env: Environment, args: string[] = []): readonly string[] {
  try {
    parseConfig(env, args);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('parseConfig', () => {
  it('fills in every default when nothing is given', () => {
    const config = parseConfig({}, []);
    expect(config.port).toBe(8080);
    expect(config.host).toBe('127.0.0.1');
    expect(config.messageBytesMax).toBe(10_485_760);
    expect(config.logRetentionMs).toBe(14 * 86_400_000);
    expect(config.allowDestinations).toEqual([]);
  });

  it('is more open for dev where the table says so', () => {
    expect(parseConfig({}, [], { dev: true }).allowDestinations).toEqual(['loopback']);
  });

  it('lets a flag win over its variable, and that over the conventional one', () => {
    expect(parseConfig({ PORT: '1', WAYPOST_PORT: '2' }, ['--port', '3']).port).toBe(3);
    expect(parseConfig({ PORT: '1', WAYPOST_PORT: '2' }, []).port).toBe(2);
    expect(parseConfig({ PORT: '1' }, []).port).toBe(1);
  });

  it('takes an empty variable for one that is not set', () => {
    expect(parseConfig({ WAYPOST_PORT: '', PORT: ' ' }, []).port).toBe(8080);
  });

  it('is not misled by the variables of a Kubernetes service named waypost', () => {
    expect(parseConfig({ WAYPOST_PORT: 'tcp://10.0.0.1:8080' }, []).port).toBe(8080);
  });

  it.each([
    [['--log-retention', '12h'], 'logRetentionMs', 12 * 3_600_000],
    [['--log-retention=90'], 'logRetentionMs', 90_000],
    [['--drain-limit', '1m30s'], 'drainLimitMs', 90_000],
    [['--message-bytes-max', '64KiB'], 'messageBytesMax', 65_536],
    [['--message-bytes-max', '2MB'], 'messageBytesMax', 2_000_000],
    [['--memory'], 'memory', true],
    [['--memory=false'], 'memory', false],
    [['--no-verify-tls'], 'verifyTls', false],
    [['--no-verify-tls=false'], 'verifyTls', true],
    [['--log-format', 'json'], 'logFormat', 'json'],
    [
      ['--allow-destinations', 'loopback, *.internal,10.0.0.0/8'],
      'allowDestinations',
      ['loopback', '*.internal', '10.0.0.0/8'],
    ],
    [['--proxy-headers', 'none'], 'proxyHeaders', []],
    [['--region', 'EU-1'], 'region', 'EU-1'],
  ] as const)('reads %j', (args, name, value) => {
    expect(parseConfig({}, args)[name]).toEqual(value);
  });

  it('reports all problems together, each under the name it was given by', () => {
    const problems = problemsOf({ WAYPOST_IN_FLIGHT_MAX: '0', PORT: '99999' }, [
      '--retries-max',
      '-1',
      '--colour',
      'extra',
    ]);
    expect(problems).toEqual([
      '--colour: there is no such option',
      'extra: not expected here',
      'PORT: must be a whole number from 0 to 65535, not "99999"',
      '--retries-max: must be a whole number from 0 to 100000, not "-1"',
      'WAYPOST_IN_FLIGHT_MAX: must be a whole number from 1 to 1000000, not "0"',
    ]);
  });

  it.each([
    [['--log-format', 'xml'], '--log-format: must be one of auto, json, pretty, not "xml"'],
    [['--log-retention', 'soon'], '--log-retention: must be a duration (30, 30s, 10m) from 1m to 3650d, not "soon"'],
    [['--message-bytes-max', '1T'], '--message-bytes-max: must be a size (65536, 64KiB) from 1 to 100MiB, not "1T"'],
    [['--memory=maybe'], '--memory: must be true or false, not "maybe"'],
    [['--port'], '--port: needs a value'],
    [['--port', '1', '--port', '2'], '--port: given more than once'],
    [['--no-port', '1'], '--no-port: there is no such option'],
  ])('refuses %j', (args, problem) => {
    expect(problemsOf({}, args)).toContain(problem);
  });

  it('reads a secret from the file that its variable names', () => {
    const readFile = (path: string) => (path === '/run/secrets/key' ? `${KEY}\n` : '');
    const config = parseConfig({ WAYPOST_ENCRYPTION_KEY_FILE: '/run/secrets/key' }, [], { readFile });
    expect(config.encryptionKey).toBe(KEY);
  });

  it('reads DATABASE_URL from a file too', () => {
    const url = 'postgres://waypost:hunter2@db/waypost';
    expect(parseConfig({ DATABASE_URL_FILE: '/run/secrets/url' }, [], { readFile: () => `${url}\n` }).databaseUrl).toBe(
      url,
    );
  });

  it('says that a secret file cannot be read, and refuses a secret given twice', () => {
    expect(problemsOf({ WAYPOST_ENCRYPTION_KEY_FILE: '/nowhere/key' })).toEqual([
      'WAYPOST_ENCRYPTION_KEY_FILE: cannot read /nowhere/key (ENOENT)',
    ]);
    expect(problemsOf({ WAYPOST_ENCRYPTION_KEY_FILE: '/nowhere/key', WAYPOST_ENCRYPTION_KEY: KEY })).toEqual([
      'WAYPOST_ENCRYPTION_KEY: given together with WAYPOST_ENCRYPTION_KEY_FILE',
    ]);
  });

  it('never repeats a secret in a problem', () => {
    const problems = problemsOf({ WAYPOST_ENCRYPTION_KEY: 'hunter2', DATABASE_URL: 'mysql://me:hunter2@db/x' });
    expect(problems).toHaveLength(2);
    expect(problems.join()).not.toContain('hunter2');
    expect(problems.join()).toContain('DATABASE_URL: must be sqlite:<path>');
  });

  it.each([
    'docs.example.com',
    'ftp://docs.example.com',
    'https://docs.example.com/?page=',
    'https://docs.example.com/#a',
  ])('refuses %s as the address of the documentation, since names of pages are appended to it', (url) => {
    expect(problemsOf({ WAYPOST_DOCS_URL: url })).toEqual([
      `WAYPOST_DOCS_URL: must be an http or https URL without query and fragment, such as https://waypost.example.com, not "${url}"`,
    ]);
  });

  it('answers something that nobody can change', () => {
    const config = parseConfig({}, ['--allow-destinations', 'loopback']);
    expect(Object.isFrozen(config)).toBe(true);
    expect(Object.isFrozen(config.allowDestinations)).toBe(true);
    expect(Object.isFrozen(config.proxyHeaders)).toBe(true);
  });
});
