/** Runs each shell command of the interface document, and checks that curl sends a request that the server accepts. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { curlOf, exampleRequest } from '../../console/src/docs/example-request.ts';
import type { OpenApiDocument } from '../../src/api/openapi.ts';
import { openWorld, TOKEN } from './support/world.ts';

/** Forms that the server refuses. A stream without an end is cut off: curl has its 200 by then. */
const WRONG_FORM = /^(400|405|413|415|417|422|431|5..)$/;

it('every example is done by a shell, or names something that is not there', async () => {
  const world = await openWorld();
  const { url } = await world.listen();
  const document: OpenApiDocument = (await world.ask({ method: 'GET', url: '/openapi.json' })).json;
  const examples = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => exampleRequest(method, path, operation)),
  );
  const env = { PATH: process.env['PATH'], QSTASH_URL: url, QSTASH_TOKEN: TOKEN };
  const wrong: string[] = [];
  // What deletes goes last, so that there is something to delete.
  for (const example of examples.toSorted((a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'))) {
    const line = `${curlOf(example)} --max-time 1 -o /dev/null -w '%{http_code}' || test $? = 28`;
    const { stdout } = await promisify(execFile)('sh', ['-c', line], { env });
    if (WRONG_FORM.test(stdout) || !/^\d{3}$/.test(stdout)) wrong.push(`${stdout} ${line}`);
  }
  await world.close();
  expect(examples.length).toBeGreaterThan(80);
  expect(wrong).toEqual([]);
}, 60_000);
