/** The filters of the API for runs, failed runs and waiters. */
import type { FilterField } from '../../parts/filters.tsx';

const COMMON_FIELDS: readonly FilterField[] = [
  { name: 'label', label: 'Label' },
  { name: 'workflowUrl', label: 'URL (exact)', placeholder: 'https://…' },
  { name: 'workflowRunId', label: 'Run id', placeholder: 'wfr_…' },
];

const RARE_FIELDS: readonly FilterField[] = [
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
      ['RUN_CANCELED', 'cancelled'],
      ['STEP_RETRY', 'retrying a step'],
      ['STEP_PARKED', 'parked'],
    ],
  },
  ...COMMON_FIELDS,
  ...RARE_FIELDS,
];

export const FAILED_FIELDS: readonly FilterField[] = [
  {
    name: 'failureFunctionState',
    label: 'Failure callback',
    choices: [
      ['', 'any'],
      ['CALLBACK_SUCCESS', 'delivered'],
      ['CALLBACK_FAIL', 'failed'],
      ['CALLBACK_INPROGRESS', 'in progress'],
      ['CALLBACK_CANCELED', 'cancelled'],
    ],
  },
  ...COMMON_FIELDS,
  { name: 'responseStatus', label: 'Status', kind: 'number', isRare: true },
  ...RARE_FIELDS,
];

export const WAITING_FIELDS: readonly FilterField[] = [
  { name: 'eventIdPrefix', label: 'Event (or prefix)', placeholder: 'paid-' },
];
