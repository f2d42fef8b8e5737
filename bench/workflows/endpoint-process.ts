/** The parent's side of an endpoint process: start it, hear which runs have ended, ask what went over its sockets. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** What the parent asks for. */
export type EndpointCommand = { kind: 'traffic' };

export interface Traffic {
  /** Bytes over all sockets of the process, in both directions, headers included. */
  bytes: number;
  /** Bytes of the bodies that were delivered to it, in the order in which it had handled them; Restate's has none. */
  bodyBytes: number[];
}

export type EndpointEvent =
  | { kind: 'listening'; port: number }
  | { kind: 'ended'; numbers: number[] }
  | { kind: 'handled'; count: number }
  | ({ kind: 'traffic' } & Traffic);

/** `own`: that of `library`, with our library in place of the official one. */
export type EndpointName = 'library' | 'own' | 'bare' | 'restate';

export interface Endpoint {
  url: string;
  pid: number;
  /** Told the number of each run whose end the server has confirmed to the endpoint. One listener. */
  onEnded: (number: number) => void;
  /** Told how many deliveries more it has handled: the server has what came of them. One listener. */
  onHandled: (count: number) => void;
  traffic(): Promise<Traffic>;
  end(): Promise<void>;
}

/** Runs the program in `bench/workflows/endpoints`; rejects when it ends before it listens. */
export async function startEndpoint(name: EndpointName, argv: string[]): Promise<Endpoint> {
  const file = name === 'own' ? 'library' : name;
  const program = fileURLToPath(new URL(`./endpoints/${file}.ts`, import.meta.url));
  // A line for each run would be what is measured.
  const env = { ...process.env, NODE_ENV: 'production', RESTATE_LOGGING: 'ERROR' };
  const child = fork(program, name === 'own' ? [...argv, name] : argv, { serialization: 'advanced', env });
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
  });
  const port = await listeningPort(child, name);
  const { pid } = child;
  if (pid === undefined) throw new Error('an endpoint that listens has no process id');
  let takeTraffic: (traffic: Traffic) => void = () => undefined;
  const endpoint: Endpoint = {
    url: `http://127.0.0.1:${port}`,
    pid,
    onEnded: () => undefined,
    onHandled: () => undefined,
    traffic() {
      const answered = new Promise<Traffic>((resolve) => {
        takeTraffic = resolve;
      });
      child.send({ kind: 'traffic' } satisfies EndpointCommand);
      return answered;
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
    child.once('exit', (code) => reject(new Error(`the ${name} endpoint ended with ${code}`)));
    child.once('message', (event: EndpointEvent) => {
      if (event.kind === 'listening') resolve(event.port);
    });
  });
}
