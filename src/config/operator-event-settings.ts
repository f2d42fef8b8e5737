/** The settings of operator events (docs/operator-events.md), and the parser of the thresholds of these events. */
import { OPERATOR_EVENTS, type OperatorEventKind } from '../engine/operator-events/kinds.ts';
import type { OperatorEventRules } from '../engine/operator-events/model.ts';
import { DAY, GIB, MINUTE, SECOND } from './measures.ts';
import type { SettingRows } from './setting.ts';

export const OPERATOR_EVENT_SETTINGS = {
  operatorEventsUrl: {
    type: 'text',
    default: '',
    secret: true, // services that accept such requests often have the secret in the URL
    pattern: /^https?:\/\/\S+$/,
    rule: 'must be an http or https URL',
    meaning: 'Endpoint that receives operator events, such as dead messages and failed runs. Empty: disabled.',
  },
  operatorEventsProject: {
    type: 'text',
    default: 'operator',
    meaning:
      'Project whose messages these are and whose keys sign them. It is created if it is missing. In waypost dev it is the first development project.',
  },
  operatorEvents: {
    type: 'list',
    default: OPERATOR_EVENTS,
    meaning:
      'Kinds of events to report. With a threshold, as in message_buried:10, a kind is reported only if there are that many in a quiet period.',
  },
  operatorEventsQuietMs: {
    type: 'duration',
    default: 5 * MINUTE,
    min: SECOND,
    max: DAY,
    meaning:
      'Quiet period after a report. Further events of the same kind and project are counted and reported together at its end.',
  },
  operatorEventsStoreBytesMax: {
    type: 'bytes',
    default: 0,
    min: 0,
    max: 1024 * 1024 * GIB,
    meaning: 'Report a database larger than this. 0: any size.',
  },
  operatorEventsFreeBytesMin: {
    type: 'bytes',
    default: GIB,
    min: 0,
    max: 1024 * 1024 * GIB,
    meaning: 'Report less free space than this on the disk of an embedded database.',
  },
} as const satisfies SettingRows;

/** Throws `RangeError` for an unknown kind or an invalid threshold. */
export function parseThresholds(kinds: readonly string[]): OperatorEventRules['thresholds'] {
  return Object.fromEntries(
    kinds.map((text) => {
      const [, kind = '', threshold = '1'] = /^([a-z_]+)(?::([1-9]\d{0,8}))?$/.exec(text) ?? [];
      if (OPERATOR_EVENTS.includes(kind as OperatorEventKind)) return [kind, Number(threshold)];
      throw new RangeError(
        `${JSON.stringify(text)} is none of ${OPERATOR_EVENTS.join(', ')}, with or without a threshold such as :10`,
      );
    }),
  );
}
