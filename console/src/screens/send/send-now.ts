import { headersOf, type RequestSpec } from '../../api/as-code.ts';
import { call } from '../../api/client.ts';

/** Sends the request and returns the server's response. Throws `RequestError`. */
export function sendNow(request: RequestSpec): Promise<unknown> {
  const { kind, destination, queueName, cron, body } = request;
  const headers = headersOf(request);
  const content = body && 'text' in body ? { body: body.text } : {};
  if (kind === 'notify') return call('notifyEvent', { path: { eventId: destination }, headers, ...content });
  if (kind === 'trigger') return call('triggerWorkflow', { path: { destination }, headers, ...content });
  if (cron !== undefined)
    return call('createSchedule', { path: { destinationOrScheduleId: destination }, headers, ...content });
  if (queueName !== undefined) return call('enqueue', { path: { queueName, destination }, headers, ...content });
  return call('publish', { path: { destination }, headers, ...content });
}
