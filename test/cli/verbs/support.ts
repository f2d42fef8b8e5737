/** A server for one test file, in the same process, and the verbs that send requests to it. */
import { afterAll, beforeAll, expect } from 'vitest';
import { DEVELOPMENT_ACCOUNTS } from '../../../src/config/development.ts';
import { type InProcessServer, serveInProcess } from '../../support/in-process-server.ts';
import { type CommandResult, giveCommand } from '../../support/waypost-command.ts';

/** Nothing listens on the discard port. */
export const NOBODY = 'http://127.0.0.1:9';

/** Each development account has a project of its own. */
export function tokenOf(account: number): string {
  return DEVELOPMENT_ACCOUNTS[account]?.token ?? '';
}

/** Whom the verbs of a test file ask, and as whom. */
export class Asked {
  url = '';
  /** Which of the development accounts asks. */
  account = 0;

  get env(): { QSTASH_URL: string; QSTASH_TOKEN: string } {
    return { QSTASH_URL: this.url, QSTASH_TOKEN: tokenOf(this.account) };
  }

  readonly waypost = (...args: string[]): Promise<CommandResult> => giveCommand(args, this.env);

  /** Resolves to what is printed. */
  readonly done = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await this.waypost(...args);
    expect([args, code], stderr).toEqual([args, 0]);
    return stdout;
  };

  readonly asJson = async <T>(...args: string[]): Promise<T> => JSON.parse(await this.done(...args, '--json')) as T;
}

/** Starts the server before the tests of a file and stops it after them. */
export function askedServer(): Asked {
  const asked = new Asked();
  let server: InProcessServer;
  beforeAll(async () => {
    server = await serveInProcess(['dev', '--memory']);
    asked.url = server.url;
  });
  afterAll(() => server.stop());
  return asked;
}

/** As a shell reads them. */
export function wordsOf(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, one, two, bare]) => one ?? two ?? bare ?? '');
}
