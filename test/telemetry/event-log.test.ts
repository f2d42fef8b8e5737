import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createEventLog, type EventLogOptions, FIELDS_ALLOWED } from '../../src/telemetry/event-log.ts';

function logWith(options: Partial<EventLogOptions>) {
  const lines: string[] = [];
  const log = createEventLog({
    format: 'json',
    level: 'info',
    color: false,
    write: (line) => lines.push(line),
    ...options,
  });
  return { log, lines };
}

describe('the event log', () => {
  it('writes one JSON line an event', () => {
    const { log, lines } = logWith({});
    log.info('listening', { url: 'http://127.0.0.1:1' });
    expect(lines).toHaveLength(1);
    const record = JSON.parse(lines[0] ?? '');
    expect(record).toEqual({ level: 'info', time: expect.any(String), event: 'listening', url: 'http://127.0.0.1:1' });
    expect(new Date(record.time).toISOString()).toBe(record.time);
  });

  it('drops fields that nobody allowed', () => {
    const { log, lines } = logWith({});
    log.warn('x', { token: 'hunter2', body: 'hunter2', authorization: 'hunter2', status: 500 });
    expect(lines.join()).not.toContain('hunter2');
    expect(lines.join()).toContain('"status":500');
  });

  it('cuts long texts', () => {
    const { log, lines } = logWith({});
    log.error('x', { error: 'e'.repeat(100_000) });
    expect(lines.join().length).toBeLessThan(3000);
  });

  it('leaves out what is less important than the level', () => {
    const { log, lines } = logWith({ level: 'warn' });
    log.info('a');
    log.warn('b');
    log.error('c');
    expect(lines.map((line) => JSON.parse(line).event)).toEqual(['b', 'c']);
  });

  it('writes for people without colours when they are not wanted', () => {
    const { log, lines } = logWith({ format: 'pretty' });
    log.info('draining', { limitMs: 5, reason: 'a "quoted"\nline' });
    expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d info {2}draining limitMs=5 reason="a \\"quoted\\"\\nline"\n$/);
  });

  it('writes for people with colours when they are', () => {
    const { log, lines } = logWith({ format: 'pretty', color: true });
    log.error('failed');
    expect(lines[0]).toContain('\u001b[31merror\u001b[0m');
  });

  it('allows every field that the sources report', () => {
    const root = fileURLToPath(new URL('../../src', import.meta.url));
    const reported = readdirSync(root, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .flatMap((file) => [
        ...readFileSync(join(root, file), 'utf8').matchAll(/\blog\.(?:debug|info|warn|error)\([^{;]*\{([^}]*)\}/g),
      ])
      .flatMap(([, fields = '']) => [...fields.matchAll(/(?:^|,)\s*(\w+)/g)].map(([, name]) => name));
    expect(reported).toContain('url');
    expect(reported.filter((name) => !FIELDS_ALLOWED.has(name ?? ''))).toEqual([]);
  });
});
