/** Checks the promises under an overload (P18), and that the simulation finds violations. */

import { beforeAll, describe, expect, test } from 'vitest';
import type { Engine } from '../../src/engine/commands.ts';
import type { Store } from '../../src/store/store.ts';
import type { StoreMethods } from '../support/altered-store.ts';
import { type OverloadBug, type OverloadMeasurements, playOverload, SAVED_MAX } from './overload.ts';

let seen: OverloadMeasurements;
beforeAll(async () => {
  seen = await playOverload();
});

describe('P18: with publishers that send many times the possible rate', () => {
  test('accepted messages are delivered, almost at the maximum rate', () => expect(deliversAll(seen)).toBe(true));
  test('some publishes are rejected, so that the others get a timely response', () =>
    expect(answersInTime(seen)).toBe(true));
  test('another project loses no messages and waits only briefly', () => expect(sparesOthers(seen)).toBe(true));
  test('steps of a run are neither rejected nor delayed', () => expect(sparesRuns(seen)).toBe(true));
});

const RULES = { deliversAll, answersInTime, sparesOthers, sparesRuns };

function deliversAll({ accepted, delivered }: OverloadMeasurements): boolean {
  return delivered >= 0.95 * accepted && delivered >= 0.8 * SAVED_MAX;
}

function answersInTime({ shed, publishMs }: OverloadMeasurements): boolean {
  return shed > 0 && Math.max(...publishMs) <= 1_500;
}

function sparesOthers({ otherMs, otherShed }: OverloadMeasurements): boolean {
  return otherShed === 0 && otherMs.length >= 20 && Math.max(...otherMs) <= 500;
}

function sparesRuns({ stepMs, stepsShed }: OverloadMeasurements): boolean {
  return stepsShed === 0 && stepMs.length >= 10 && Math.max(...stepMs) <= 500;
}

/** Each bug with the rule that it breaks. */
const PLANTED_BUGS: Record<string, { rule: keyof typeof RULES; bug: OverloadBug }> = {
  'settles and claims wait behind all accepts': { rule: 'deliversAll', bug: { store: acceptsFirst } },
  'publishes start in order of arrival, regardless of their project': {
    rule: 'sparesOthers',
    bug: { engine: inOneLine },
  },
  'no publish is rejected': { rule: 'answersInTime', bug: { settings: { publishDelayTargetMs: 60_000 } } },
  'a step of a run is rejected': {
    rule: 'sparesRuns',
    bug: {
      engine: (engine) => ({
        publish: async (projectId, commands) => {
          engine.checkAdmission(projectId);
          return engine.publish(projectId, commands);
        },
      }),
    },
  },
};

test.for(Object.entries(PLANTED_BUGS))('P18: catches that %s', async ([, { rule, bug }]) => {
  expect(RULES[rule](await playOverload(bug))).toBe(false);
});

/** Makes each settle and each claim wait until all accepts in progress have ended. */
function acceptsFirst(store: Store): Partial<StoreMethods> {
  const accepts = new Set<Promise<unknown>>();
  const note = <T>(accept: Promise<T>): Promise<T> => {
    accepts.add(accept);
    const over = () => accepts.delete(accept);
    accept.then(over, over);
    return accept;
  };
  const behindAll = () => Promise.allSettled(accepts);
  return {
    accept: ({ messages: newMessages, nowMs }) => note(store.messages.accept({ messages: newMessages, nowMs })),
    settle: async (args) => {
      await behindAll();
      return store.messages.settle(args);
    },
    claim: async (args) => {
      await behindAll();
      return store.messages.claim(args);
    },
  };
}

function inOneLine(engine: Engine): Partial<Engine> {
  let underWay = 0;
  const waiting: (() => void)[] = [];
  return {
    publish: async (projectId, commands) => {
      if (underWay === 64) await new Promise<void>((resolve) => waiting.push(resolve));
      else underWay += 1;
      try {
        return await engine.publish(projectId, commands);
      } finally {
        const next = waiting.shift();
        if (next) next();
        else underWay -= 1;
      }
    },
  };
}
