/**
 * The program of the comparison with Restate's SDK behind an HTTP/2 server, as in its documentation.
 * `node bench/workflows/endpoints/restate.ts <folder with the SDK>`.
 */
import { createServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type Payload, type Result, STEP_NAMES, STEPS } from '../program.ts';
import { announce, reportEnd } from './reporting.ts';

/** The members of the SDK that are used. The SDK is not a dependency of this project. */
interface Sdk {
  service(definition: {
    name: string;
    handlers: Record<string, (context: Context, payload: Payload) => Promise<Result>>;
  }): unknown;
  createEndpointHandler(options: {
    services: unknown[];
  }): (request: Http2ServerRequest, response: Http2ServerResponse) => void;
}

interface Context {
  run<T>(name: string, action: () => T): Promise<T>;
}

const [folder = ''] = process.argv.slice(2);
const sdk = createRequire(join(folder, 'package.json'))('@restatedev/restate-sdk') as Sdk;

const bench = sdk.service({
  name: 'bench',
  handlers: {
    three: async (context, { number }) => {
      let value = number;
      for (const [index, step] of STEPS.entries()) {
        const before = value;
        value = await context.run(STEP_NAMES[index] ?? '', () => step(before));
      }
      // Reports the end of the run slightly before the server saves the end; all other endpoints report it later.
      reportEnd(number);
      return { number, value };
    },
  },
});

const server = createServer(sdk.createEndpointHandler({ services: [bench] }));
server.listen(0, '127.0.0.1', 4096, () => announce((server.address() as AddressInfo).port));
