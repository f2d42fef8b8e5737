/** Checks that the server accepts the example of each operation, and that the shell command on the page sends the same request. */
import { execFileSync } from 'node:child_process';
import type { InjectOptions } from 'light-my-request';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  curlOf,
  type ExampleRequest,
  exampleRequest,
  headersOf,
  targetOf,
} from '../../console/src/docs/example-request.ts';
import type { OpenApiDocument } from '../../src/api/openapi.ts';
import { openWorld, type World } from './support/world.ts';

let world: World;
let document: OpenApiDocument;
let examples: Map<string, ExampleRequest>;
beforeAll(async () => {
  world = await openWorld();
  document = (await world.ask({ method: 'GET', url: '/openapi.json' })).json;
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, ExampleRequest] => [
      operation.operationId,
      exampleRequest(method, path, operation),
    ]),
  );
  examples = new Map(operations);
});
afterAll(() => world.close());

describe('the example of each operation', () => {
  it('is done, or names something that is not there', async () => {
    const rank = ({ method }: ExampleRequest) =>
      ['POST', 'PATCH', 'PUT', 'GET', 'HEAD', 'OPTIONS', 'DELETE'].indexOf(method);
    const inOrder = [...examples].sort(([, a], [, b]) => rank(a) - rank(b));
    const refused: Record<string, string> = {};
    const unknown = new Set<string>();
    for (const [operationId, example] of inOrder) {
      const { status, text } = await world.ask({
        method: example.method as NonNullable<InjectOptions['method']>,
        url: targetOf(example),
        headers: headersOf(example),
        ...(example.body !== undefined && { payload: example.body }),
      });
      if (status === 404) unknown.add(operationId);
      else if (status > 299) refused[operationId] = `${status} ${text}`;
    }
    // The token of a checkpoint comes with a delivery.
    expect(refused).toEqual({ saveCheckpoint: expect.stringMatching(/^401 /) });
    // Ids that only the server makes.
    const made = /[{](messageId|dlqId|tokenId|userId)[}]/;
    const byMadeId = [...examples].flatMap(([operationId, { path }]) => (made.test(path) ? [operationId] : []));
    expect([...unknown].filter((operationId) => !byMadeId.includes(operationId))).toEqual([
      'retryDlqMessages',
      'resumeWorkflowRuns',
      'restartWorkflowRuns',
    ]);
  });

  it('does to one what can be done to all', () => {
    for (const [operationId, { path, parameters, method }] of examples) {
      const isOfAll = /s$/.test(operationId) && (method === 'DELETE' || /dlq\/\w+$/.test(path)) && !path.includes('{');
      if (isOfAll)
        expect([operationId, parameters.map(({ name }) => name)]).toEqual([
          operationId,
          [expect.stringMatching(/Ids$/)],
        ]);
    }
  });
});

describe('a line for a shell', () => {
  it('has the variables of the client libraries, and quotes nothing that needs none', () => {
    const publish = examples.get('publish');
    expect(publish && curlOf(publish)).toBe(
      [
        'curl -sS -X POST "$QSTASH_URL"/v2/publish/https://example.com/hook',
        '-H "Authorization: Bearer $QSTASH_TOKEN"',
        "-H 'Upstash-Retries: 5'",
        "-H 'Upstash-Delay: 10s'",
        "-H 'Content-Type: application/json'",
        `--data-raw '{"order":42}'`,
      ].join(' \\\n  '),
    );
  });

  it('says to curl what was typed, whatever a shell makes of it', () => {
    const typed = `it's "$HOME" \`id\` \\ !! ; & #\n[1]{2}`;
    const request: ExampleRequest = {
      method: 'PUT',
      path: '/v2/x/{destination}',
      isPublic: true,
      parameters: [
        { in: 'path', name: 'destination', value: `https://example.com/../${typed}` },
        { in: 'query', name: 'label', value: typed },
        { in: 'header', name: 'X-Odd', value: typed },
      ],
      body: typed,
    };
    const script = `curl() { printf '%s\\0' "$@"; }; QSTASH_URL=http://127.0.0.1; ${curlOf(request)}`;
    const given = execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\0');
    const target = `http://127.0.0.1/v2/x/https://example.com/../${typed}?label=${encodeURIComponent(typed)}`;
    expect(given.slice(3)).toEqual([
      ...['--globoff', '--path-as-is', target, '-H', `X-Odd: ${typed}`, '-H', 'Content-Type: text/plain'],
      ...['--data-raw', typed, ''],
    ]);
  });
});
