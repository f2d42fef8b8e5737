/** Forwards a checkpoint that reaches another worker of the process than the one that makes its call. */
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import type { CheckpointRequest } from '../../src/api/edge/other-workers.ts';
import { DEVELOPMENT_ACCOUNTS } from '../../src/config/development.ts';
import { decodeCheckpointClaim, mintCheckpointToken } from '../../src/protocol/workflow/checkpoints.ts';
import { connectAll, OtherThreads } from '../../src/server/threads/other-threads.ts';
import { called, callOf, end, save } from '../conformance/support/checkpoints.ts';
import { Subject } from '../conformance/support/subject.ts';
import { DONE, runStep } from '../conformance/support/workflow.ts';

const NEVER = new AbortController().signal;
const CHECKPOINT: CheckpointRequest = {
  caller: { projectId: 1, runKey: 2, key: 3, claimToken: 4, worker: 1 },
  token: 't',
  body: new TextEncoder().encode('{"done":["t"]}'),
  callerIp: '127.0.0.1',
};

describe('workers that are connected', () => {
  const open: OtherThreads[] = [];
  function connected(count: number): OtherThreads[] {
    const all = connectAll(count).map((ports) => new OtherThreads(ports));
    open.push(...all);
    return all;
  }
  afterEach(() => {
    for (const each of open.splice(0)) each.close();
  });

  it('ask the one with the number, which is given what was sent', async () => {
    const workers = connected(3);
    for (const worker of workers) {
      worker.serve(async (sent) => ({ status: 200, json: JSON.stringify([worker.own, sent.token, sent.body.length]) }));
    }
    const answers = workers.flatMap((asking) =>
      workers
        .filter((asked) => asked !== asking)
        .map(async ({ own }) => [own, await asking.forward(own, CHECKPOINT, NEVER)] as const),
    );
    for (const [own, answer] of await Promise.all(answers)) {
      expect(answer).toEqual({ status: 200, json: `[${own},"t",14]` });
    }
  });

  it('learn that one makes no such call, and that there is none with a number', async () => {
    const [one, other] = connected(2);
    for (const each of [one, other]) each?.serve(async () => undefined);
    expect(await one?.forward(1, CHECKPOINT, NEVER)).toBeUndefined();
    expect(await one?.forward(2, CHECKPOINT, NEVER)).toBeUndefined();
  });

  it('hear when nobody waits for their answer any more', async () => {
    const [one, other] = connected(2);
    one?.serve(async () => undefined);
    other?.serve(
      (_, hangUp) =>
        new Promise((resolve) => hangUp.addEventListener('abort', () => resolve({ status: 200, json: 'heard' }))),
    );
    const hangUp = new AbortController();
    const answer = one?.forward(1, CHECKPOINT, hangUp.signal);
    hangUp.abort();
    expect(await answer).toEqual({ status: 200, json: 'heard' });
    expect(await one?.forward(1, CHECKPOINT, hangUp.signal)).toEqual({ status: 200, json: 'heard' });
  });

  it('go on without one that has ended, also when it owes an answer', async () => {
    const [one, other] = connected(2);
    one?.serve(async () => undefined);
    const asked = new Promise<void>((resolve) => {
      other?.serve(() => {
        resolve();
        return new Promise(() => {});
      });
    });
    const answer = one?.forward(1, CHECKPOINT, NEVER);
    await asked;
    other?.close();
    expect(await answer).toBeUndefined();
    expect(await one?.forward(1, CHECKPOINT, NEVER)).toBeUndefined();
  });
});

it('is saved where it is when nobody makes the call, and the run goes on by another delivery', async () => {
  const server = await Subject.open({ workers: 2 });
  onTestFinished(() => server.close());
  const { run, token, respond } = await called(server);
  const claim = decodeCheckpointClaim(token);
  if (!claim) throw new Error('a delivery without a token');
  // As a token of another machine, whose workers have the same numbers: it names the worker that it is sent to.
  const [{ signingKeys }] = DEVELOPMENT_ACCOUNTS;
  const foreign = mintCheckpointToken({ ...claim, worker: 1 - claim.worker }, signingKeys.current);
  const body = JSON.stringify({ done: [foreign], append: [{ step: runStep(1) }] });
  const saved = await server.ask('POST', '/v2/waypost/checkpoints', {
    token: foreign,
    body,
    worker: 1 - claim.worker,
  });
  expect(saved.json).toEqual({ entries: [{ messageId: expect.stringMatching(/^msg_/) }] });
  const second = await callOf(run, 2, respond);
  expect(second.delivery.messageId).toBe(saved.json.entries[0].messageId);
  respond(DONE);
  const [two] = await save(server, [second.token], [{ step: runStep(2) }]);
  respond(end(two.token));
  await run.reached('RUN_SUCCESS');
});
