/** Starts and controls an endpoint process: reports which runs have ended, and its network traffic. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The commands of the parent. */
export type EndpointCommand = { kind: 'traffic' };

export interface Traffic {
  /** Bytes over all sockets of the process, in both directions, headers included. */
  bytes: number;
  /** Sizes of the delivered bodies, in the order in which they were handled; empty for Restate. */
  bodyBytes: number[];
}

export type EndpointEvent =
  | { kind: 'listening'; port: number }
  | { kind: 'ended'; numbers: number[] }
  | { kind: 'handled'; count: number }
  | ({ kind: 'traffic' } & Traffic);

/** `own` is the `library` endpoint with our library instead of the official one. */
export type EndpointName = 'library' | 'own' | 'bare' | 'restate';

export interface Endpoint {
  url: string;
  pid: number;
  /** Called with the number of each run whose end the server has confirmed. One listener. */
  onEnded: (number: number) => void;
  /** Called with the number of newly handled deliveries, whose results the server has. One listener. */
  onHandled: (count: number) => void;
  traffic(): Promise<Traffic>;
  end(): Promise<void>;
}

/** Runs the program in `bench/workflows/endpoints`; rejects if the program exits before it listens. */
export async function startEndpoint(name: EndpointName, argv: string[]): Promise<Endpoint> {
  const file = name === 'own' ? 'library' : name;
  const program = fileURLToPath(new URL(`./endpoints/${file}.ts`, import.meta.url));
  // Logging a line per run would distort the measurement.
  const env = { ...process.env, NODE_ENV: 'production', RESTATE_LOGGING: 'ERROR' };
  const child = fork(program, name === 'own' ? [...argv, name] : argv, { serialization: 'advanced', env });
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
  });
  const port = await listeningPort(child, name);
  const { pid } = child;
  if (pid === undefined) throw new Error('a listening endpoint has no process id');
  let takeTraffic: (traffic: Traffic) => void = () => undefined;
  const endpoint: Endpoint = {
    url: `http://127.0.0.1:${port}`,
    pid,
    onEnded: () => undefined,
    onHandled: () => undefined,
    traffic() {
      const traffic = new Promise<Traffic>((resolve) => {
        takeTraffic = resolve;
      });
      child.send({ kind: 'traffic' } satisfies EndpointCommand);
      return traffic;
    },
    end() {
      child.kill('SIGTERM');
      return exited;
    },
  };
  child.on('message', (event: EndpointEvent) => {
    switch (event.kind) {
      case 'ended':
        for (const number of event.numbers) endpoint.onEnded(number);
        return;
      case 'handled':
        endpoint.onHandled(event.count);
        return;
      case 'traffic':
        takeTraffic(event);
        return;
      case 'listening':
    }
  });
  return endpoint;
}

function listeningPort(child: ChildProcess, name: string): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the ${name} endpoint exited with ${code}`)));
    child.once('message', (event: EndpointEvent) => {
      if (event.kind === 'listening') resolve(event.port);
    });
  });
}
