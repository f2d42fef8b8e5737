/** What runs are filtered by, as the interface calls it. */
import type { FilterField } from '../../parts/filters.tsx';

const OF_EVERY_RUN: readonly FilterField[] = [
  { name: 'label', label: 'Label' },
  { name: 'workflowUrl', label: 'URL, the whole', placeholder: 'https://…' },
  { name: 'workflowRunId', label: 'Run id', placeholder: 'wfr_…' },
];

const RARE: readonly FilterField[] = [
  { name: 'flowControlKey', label: 'Flow-control key', isRare: true },
  { name: 'fromDate', label: 'From', kind: 'time', isRare: true },
  { name: 'toDate', label: 'To', kind: 'time', isRare: true },
];

export const RUN_FIELDS: readonly FilterField[] = [
  {
    name: 'state',
    label: 'State',
    choices: [
      ['', 'any'],
      ['RUN_STARTED', 'started'],
      ['RUN_SUCCESS', 'success'],
      ['RUN_FAILED', 'failed'],
      ['RUN_CANCELED', 'canceled'],
      ['STEP_RETRY', 'a step is retried'],
      ['STEP_PARKED', 'parked'],
    ],
  },
  ...OF_EVERY_RUN,
  ...RARE,
];

export const FAILED_FIELDS: readonly FilterField[] = [
  {
    name: 'failureFunctionState',
    label: 'Failure callback',
    choices: [
      ['', 'any'],
      ['CALLBACK_SUCCESS', 'told'],
      ['CALLBACK_FAIL', 'failed'],
      ['CALLBACK_INPROGRESS', 'under way'],
      ['CALLBACK_CANCELED', 'given up'],
    ],
  },
  ...OF_EVERY_RUN,
  { name: 'responseStatus', label: 'Status', kind: 'number', isRare: true },
  ...RARE,
];

export const WAITING_FIELDS: readonly FilterField[] = [
  { name: 'eventIdPrefix', label: 'Event, or how it begins', placeholder: 'paid-' },
];
