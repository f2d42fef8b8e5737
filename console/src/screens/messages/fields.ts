/** The filters of the API for messages and for log entries. */
import type { FilterField } from '../../parts/filters.tsx';

export const STATES_OF_LOG: FilterField = {
  name: 'state',
  label: 'State',
  choices: [
    ['', 'any'],
    ['CREATED', 'created'],
    ['IN_PROGRESS', 'in progress'],
    ['ACTIVE', 'active'],
    ['ERROR', 'error'],
    ['RETRY', 'retry'],
    ['DELIVERED', 'delivered'],
    ['FAILED', 'dead'],
    ['CANCEL_REQUESTED', 'cancel requested'],
    ['CANCELED', 'cancelled'],
  ],
};

export const STATES_OF_UNFINISHED: FilterField = {
  name: 'state',
  label: 'State',
  choices: [
    ['', 'any'],
    ['waiting', 'waiting (not due yet)'],
    ['held', 'held (due, but blocked)'],
    ['active', 'active (attempt in progress)'],
  ],
};

export const FIELDS: readonly FilterField[] = [
  { name: 'host', label: 'Host', placeholder: 'app.example.com' },
  { name: 'queueName', label: 'Queue' },
  { name: 'label', label: 'Label' },
  { name: 'url', label: 'URL (exact)', placeholder: 'https://…', isRare: true },
  { name: 'messageId', label: 'Message id', placeholder: 'msg_…', isRare: true },
  { name: 'flowControlKey', label: 'Flow-control key', isRare: true },
  { name: 'scheduleId', label: 'Schedule id', isRare: true },
  { name: 'topicName', label: 'URL group', isRare: true },
  { name: 'fromDate', label: 'From', kind: 'time', isRare: true },
  { name: 'toDate', label: 'To', kind: 'time', isRare: true },
];
