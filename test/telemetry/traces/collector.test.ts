/** How spans are sent to a collector, configured by the variables of OpenTelemetry, and how a failure is reported. */
import { once } from 'node:events';
import http from 'node:http';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { expect, it, onTestFinished } from 'vitest';
import { Collector } from '../../../src/telemetry/traces/collector.ts';
import { readCollectorOptions, readResource } from '../../../src/telemetry/traces/environment.ts';
import { listen, originOf } from '../../support/listen.ts';

const BODY = Buffer.from('spans');

type Answered = [status: number, headers: http.OutgoingHttpHeaders];

/** `answers` in turns, the last of them for ever; 0: none at all. */
async function open(answers: (number | Answered)[], environment = {}) {
  const requests: { path: string | undefined; headers: http.IncomingHttpHeaders; body: Buffer }[] = [];
  const server = http.createServer(async (request, response) => {
    requests.push({ path: request.url, headers: request.headers, body: await buffer(request) });
    server.emit('arrived');
    const [status, headers] = [answers[requests.length - 1] ?? answers.at(-1) ?? 200].flat() as [
      number,
      http.OutgoingHttpHeaders?,
    ];
    if (status > 0) response.writeHead(status, headers).end('an answer');
  });
  await listen(server);
  const endpoint = `${originOf(server)}/`;
  const collector = new Collector(readCollectorOptions(endpoint, environment));
  onTestFinished(() => {
    collector.close();
    server.closeAllConnections();
    server.close();
  });
  return { collector, requests, arrived: () => once(server, 'arrived') };
}

it('posts protobuf to /v1/traces', async () => {
  const { collector, requests } = await open([200]);
  expect(await collector.send(BODY)).toBeUndefined();
  expect(requests).toMatchObject([
    { path: '/v1/traces', headers: { 'content-type': 'application/x-protobuf' }, body: BODY },
  ]);
});

it('sends the headers that the environment names, those for traces before the general ones', async () => {
  const headers = {
    OTEL_EXPORTER_OTLP_HEADERS: 'api-key=general',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: ' api-key = a%20b=c , x=1',
  };
  const { collector, requests } = await open([200], headers);
  await collector.send(BODY);
  expect(requests[0]?.headers).toMatchObject({ 'api-key': 'a b=c', x: '1' });
});

it('compresses what it sends where the environment says gzip', async () => {
  const { collector, requests } = await open([200], { OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip' });
  await collector.send(BODY);
  expect(requests[0]?.headers['content-encoding']).toBe('gzip');
  expect(gunzipSync(requests[0]?.body ?? '')).toEqual(BODY);
});

it('tries again after 429, 502, 503 and 504', async () => {
  const passing = [429, 502, 503, 504].map((status): Answered => [status, { 'retry-after': '0' }]);
  const { collector, requests } = await open([...passing, 200]);
  expect(await collector.send(BODY)).toBeUndefined();
  expect(requests.map(({ body }) => body)).toEqual([BODY, BODY, BODY, BODY, BODY]);
});

it('gives up at once what the collector refuses', async () => {
  const { collector, requests } = await open([400]);
  expect(await collector.send(BODY)).toBe('the collector responded with 400');
  expect(requests).toHaveLength(1);
});

it('gives up when the time for all tries is over', async () => {
  const { collector, requests } = await open([[503, { 'retry-after': '4' }]], { OTEL_EXPORTER_OTLP_TIMEOUT: '3000' });
  expect(await collector.send(BODY)).toMatch(/retryable/);
  expect(requests).toHaveLength(1);
});

it('names the error when nobody listens', async () => {
  const collector = new Collector(readCollectorOptions('http://127.0.0.1:1', { OTEL_EXPORTER_OTLP_TIMEOUT: '500' }));
  expect(await collector.send(BODY)).toBe('ECONNREFUSED');
});

it('fails a request in progress when it is closed', async () => {
  const { collector, arrived } = await open([0]);
  const sent = collector.send(BODY);
  await arrived();
  collector.close();
  expect(await sent).toBe('the collector did not respond before the shutdown');
});

it.each([
  ['OTEL_EXPORTER_OTLP_TIMEOUT', '10s', 'must be milliseconds, such as 10000'],
  ['OTEL_EXPORTER_OTLP_TRACES_COMPRESSION', 'zstd', 'must be gzip or none'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'api-key', 'must be pairs such as key=value,key=value'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'a=100%', 'a percent sign must be written as %25'],
  ['OTEL_EXPORTER_OTLP_CERTIFICATE', '/nowhere/ca.pem', 'no such file'],
])('refuses %s=%s by name', (variable, value, rule) => {
  const read = () => readCollectorOptions('http://127.0.0.1:4318', { [variable]: value });
  expect(read).toThrow(variable);
  expect(read).toThrow(rule);
});

it('calls itself waypost, unless the environment has a name, and adds what that says of it', () => {
  const worker = { instance: 'host-1', version: '1.2.3' };
  expect(readResource(worker, {})).toEqual({
    'service.name': 'waypost',
    'service.version': '1.2.3',
    'service.instance.id': 'host-1',
  });
  const environment = {
    OTEL_SERVICE_NAME: 'queue',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=a%2Cb,service.name=other',
  };
  expect(readResource(worker, environment)).toMatchObject({ 'service.name': 'queue', 'deployment.environment': 'a,b' });
});
