/** The settings of the group `Operator events` (docs/operator-events.md), and what the list of kinds means. */
import { OPERATOR_EVENTS, type OperatorEventKind } from '../engine/operator-events/kinds.ts';
import type { OperatorEventRules } from '../engine/operator-events/model.ts';
import { DAY, GIB, MINUTE, SECOND } from './measures.ts';
import type { SettingRows } from './setting.ts';

export const OPERATOR_EVENT_SETTINGS = {
  operatorEventsUrl: {
    type: 'text',
    default: '',
    secret: true, // services that take such requests have the secret in the URL
    pattern: /^https?:\/\/\S+$/,
    rule: 'must be an http or https URL',
    meaning: 'Where the operator is told of dead messages, failed runs and the like; empty: nowhere.',
  },
  operatorEventsProject: {
    type: 'text',
    default: 'operator',
    meaning:
      'Project whose messages these are and whose keys sign them; made when it is missing. In waypost dev it is the first development project.',
  },
  operatorEvents: {
    type: 'list',
    default: OPERATOR_EVENTS,
    meaning:
      'Kinds of events that are told. With a number, as in message_buried:10, a kind is told only when so many come within a quiet time.',
  },
  operatorEventsQuietMs: {
    type: 'duration',
    default: 5 * MINUTE,
    min: SECOND,
    max: DAY,
    meaning: 'After a kind was told of a project, the next are counted for so long, and then told together.',
  },
  operatorEventsStoreBytesMax: {
    type: 'bytes',
    default: 0,
    min: 0,
    max: 1024 * 1024 * GIB,
    meaning: 'The operator is told when the database is larger; 0: any size.',
  },
  operatorEventsFreeBytesMin: {
    type: 'bytes',
    default: GIB,
    min: 0,
    max: 1024 * 1024 * GIB,
    meaning: 'The operator is told when less is free on the disk of an embedded database.',
  },
} as const satisfies SettingRows;

/** Throws `RangeError` for what is no kind, or no threshold. */
export function parseThresholds(kinds: readonly string[]): OperatorEventRules['thresholds'] {
  return Object.fromEntries(
    kinds.map((text) => {
      const [, kind = '', threshold = '1'] = /^([a-z_]+)(?::([1-9]\d{0,8}))?$/.exec(text) ?? [];
      if (OPERATOR_EVENTS.includes(kind as OperatorEventKind)) return [kind, Number(threshold)];
      throw new RangeError(
        `${JSON.stringify(text)} is none of ${OPERATOR_EVENTS.join(', ')}, nor one with a number behind a colon`,
      );
    }),
  );
}
