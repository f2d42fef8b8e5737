import { describe, expect, it } from 'vitest';
import { hookEvent, notifiedStep, timedOutStep } from '../../src/workflow/waits.ts';
import { headerMap } from '../protocol/refusal.ts';

const STEP = { stepId: 6, stepType: 'Wait', stepName: 'wärten', concurrent: 2, targetStep: 6, unknown: null };

function bytes(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

function parsed(body: Uint8Array): Record<string, unknown> {
  return JSON.parse(Buffer.from(body).toString('utf8')) as Record<string, unknown>;
}

describe('the result of a wait (contract W 14.6)', () => {
  it('is the registered step with the event, byte for byte, in base64', () => {
    const event = Uint8Array.of(0, 255, 0x7b, 0xc3);
    const result = parsed(notifiedStep(bytes(STEP), 'order-7', event));
    const end = { waitEventId: 'order-7', waitTimeout: false, out: Buffer.from(event).toString('base64') };
    expect(result).toEqual({ ...STEP, ...end });
    expect(Object.keys(result).slice(0, 6)).toEqual(Object.keys(STEP));
  });

  it('has no output for an empty event', () => {
    const result = parsed(notifiedStep(bytes(STEP), 'e', new Uint8Array()));
    expect(result).toEqual({ ...STEP, waitEventId: 'e', waitTimeout: false });
  });

  it('has no output after a timeout, whatever the registered step contained', () => {
    const result = parsed(timedOutStep(bytes({ ...STEP, out: 'forged' }), 'e'));
    expect(result).toEqual({ ...STEP, waitEventId: 'e', waitTimeout: true });
  });
});

describe('the event of a webhook (contract W 14.9)', () => {
  const call = {
    method: 'POST',
    header: headerMap({ 'Content-Type': ['application/json'], 'X-Many': ['1', '2'] }),
    body: Buffer.from('{"a":1}'),
    proto: 'http',
    host: 'server:8080',
    url: '/v2/workflows/hooks/u/wfr_x/e?q=1',
  };

  it('is the unchanged request', () => {
    expect(parsed(hookEvent(call))).toEqual({
      method: 'POST',
      header: { 'Content-Type': ['application/json'], 'X-Many': ['1', '2'] },
      body: Buffer.from('{"a":1}').toString('base64'),
      proto: 'http',
      host: 'server:8080',
      url: '/v2/workflows/hooks/u/wfr_x/e?q=1',
    });
  });

  it('has no body if the request had none, or if its method allows none', () => {
    expect(parsed(hookEvent({ ...call, body: new Uint8Array() }))).not.toHaveProperty('body');
    for (const method of ['GET', 'HEAD']) expect(parsed(hookEvent({ ...call, method }))).not.toHaveProperty('body');
  });

  it('can be converted back to a request, whatever its headers', () => {
    const header = headerMap({ 'Bad Name': ['x'], 'X-Split': ['a\r\nb'], 'X-Latin': ['\xe9'], Good: ['y'] });
    const event = parsed(hookEvent({ ...call, header }));
    expect(event['header']).toEqual({ 'X-Latin': ['\xe9'], Good: ['y'] });
    const headers = Object.entries(event['header'] as Record<string, string[]>).map(([name, values]) => [
      name,
      values.join(', '),
    ]);
    const request = new Request(`${event['proto']}://${event['host']}${event['url']}`, {
      method: 'POST',
      headers: headers as [string, string][],
    });
    expect(request.url).toBe('http://server:8080/v2/workflows/hooks/u/wfr_x/e?q=1');
  });
});
