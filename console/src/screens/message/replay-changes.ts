/** The changes of a replay, from the form in which the user edited a message. Pure. */
import { isHidden } from '../../api/hidden.ts';
import type { Content } from './content.ts';

export interface ReplayForm {
  method: string;
  destination: string;
  /** One header per line, as `Name: value`. */
  headers: string;
  body: string;
  retries: string;
  queueName: string;
}

/** The initial form. Hidden values are empty, since the user has to enter hidden values again. */
export function formOf({ method, url, header = {}, body, maxRetries, queueName }: Content): ReplayForm {
  return {
    method,
    destination: url,
    headers: Object.entries(header)
      .map(([name, values]) => `${name}: ${shown(values.join(', '))}`)
      .join('\n'),
    body: body && 'text' in body ? shown(body.text) : '',
    retries: String(maxRetries),
    queueName: queueName ?? '',
  };
}

function shown(value: string): string {
  return isHidden(value) ? '' : value;
}

/** The body of the request: the values of `form` that differ from `like`. */
export function changesOf(like: ReplayForm, form: ReplayForm) {
  const { method, destination, body, retries, queueName } = form;
  const before = headersIn(like.headers);
  const after = headersIn(form.headers);
  const headers: Record<string, string | null> = {};
  for (const [name, value] of after) if (before.get(name) !== value) headers[`Upstash-Forward-${name}`] = value;
  for (const name of before.keys()) if (!after.has(name)) headers[`Upstash-Forward-${name}`] = null;
  if (method !== like.method) headers['Upstash-Method'] = method;
  if (retries !== like.retries && retries !== '') headers['Upstash-Retries'] = retries;
  return {
    ...(destination !== like.destination && { destination }),
    ...(queueName !== like.queueName && { queue: queueName === '' ? null : queueName }),
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(body !== like.body && { body }),
  };
}

function headersIn(text: string): Map<string, string> {
  const lines = text.split('\n').map((line) => {
    const colon = line.indexOf(':');
    const name = (colon < 0 ? line : line.slice(0, colon)).trim();
    return [name, colon < 0 ? '' : line.slice(colon + 1).trim()] as const;
  });
  return new Map(lines.filter(([name]) => name !== ''));
}
