/** The form of the request builder, and the request that it describes. Pure. */
import type { RequestSpec } from '../../api/as-code.ts';

export const KINDS = [
  ['publish', 'Publish a message'],
  ['enqueue', 'Enqueue a message'],
  ['schedule', 'Create a schedule'],
  ['trigger', 'Start a workflow run'],
  ['notify', 'Send an event'],
] as const;

export type Kind = (typeof KINDS)[number][0];

export interface Form {
  kind: Kind;
  destination: string;
  method: string;
  /** One header per line, as `Name: value`. */
  headers: string;
  body: string;
  queueName: string;
  cron: string;
  scheduleId: string;
  delay: string;
  retries: string;
  timeoutS: string;
  deduplicationId: string;
  label: string;
  callback: string;
  failureCallback: string;
  flowControlKey: string;
  parallelism: string;
  rate: string;
  periodS: string;
}

export const EXAMPLE_URL = 'http://127.0.0.1:3000/hook';
export const EXAMPLE_EVENT = 'paid-42';

export const EMPTY_FORM: Form = {
  kind: 'publish',
  destination: '',
  method: 'POST',
  headers: 'Content-Type: application/json',
  body: '{"hello":"world"}',
  queueName: '',
  cron: '',
  scheduleId: '',
  delay: '',
  retries: '',
  timeoutS: '',
  deduplicationId: '',
  label: '',
  callback: '',
  failureCallback: '',
  flowControlKey: '',
  parallelism: '',
  rate: '',
  periodS: '',
};

/** The fields of each kind of request, in addition to destination, headers and body. */
export const FIELDS_OF: Record<Kind, readonly (keyof Form)[]> = {
  publish: [
    'method',
    'delay',
    'retries',
    'timeoutS',
    'deduplicationId',
    'label',
    'callback',
    'failureCallback',
    'flowControlKey',
  ],
  enqueue: ['queueName', 'method', 'retries', 'timeoutS', 'deduplicationId', 'label', 'callback', 'failureCallback'],
  schedule: [
    'cron',
    'scheduleId',
    'method',
    'delay',
    'queueName',
    'retries',
    'timeoutS',
    'label',
    'callback',
    'failureCallback',
    'flowControlKey',
  ],
  trigger: ['delay', 'retries', 'label', 'failureCallback', 'flowControlKey'],
  notify: [],
};

export function requestOf(form: Form): RequestSpec {
  const fields = FIELDS_OF[form.kind];
  const text = (name: keyof Form): string | undefined =>
    fields.includes(name) && form[name] !== '' ? form[name] : undefined;
  const number = (name: keyof Form): number | undefined => numberOf(text(name));
  const key = text('flowControlKey');
  return {
    kind: form.kind === 'trigger' || form.kind === 'notify' ? form.kind : undefined,
    destination: form.destination.trim() || (form.kind === 'notify' ? EXAMPLE_EVENT : EXAMPLE_URL),
    method: text('method') ?? 'POST',
    headers: form.kind === 'notify' ? [] : headerLines(form.headers),
    body: form.body === '' ? undefined : { text: form.body },
    queueName: text('queueName'),
    cron: text('cron'),
    scheduleId: text('scheduleId'),
    delay: text('delay'),
    retries: number('retries'),
    timeoutS: number('timeoutS'),
    deduplicationId: text('deduplicationId'),
    labels: text('label')
      ?.split(',')
      .map((label) => label.trim()),
    callback: text('callback'),
    failureCallback: text('failureCallback'),
    flowControl:
      key === undefined
        ? undefined
        : { key, parallelism: numberOf(form.parallelism), rate: numberOf(form.rate), periodS: numberOf(form.periodS) },
  };
}

function numberOf(text = ''): number | undefined {
  return text === '' ? undefined : Number(text);
}

/** A line without a colon is a header without a value. */
function headerLines(text: string): [name: string, value: string][] {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const colon = line.indexOf(':');
      return colon < 0 ? [line.trim(), ''] : [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
    });
}
