/** Applies the server's filter rules to live entries. Pure. */
import { maskPassword } from '../../../../src/protocol/urls/masked-url.ts';
import type { LiveEntry } from '../../api/live.ts';

const IN_PROGRESS: readonly string[] = ['ACTIVE', 'RETRY', 'ERROR'];

export function matches(entry: LiveEntry, filter: Record<string, string>): boolean {
  // Messages of workflow runs are listed under their runs.
  if (entry.workflowRunId !== undefined) return false;
  return Object.entries(filter).every(([name, value]) => matchesOne(entry, name, value));
}

function matchesOne(entry: LiveEntry, name: string, value: string): boolean {
  switch (name) {
    case 'state':
      return entry.state === value || (value === 'IN_PROGRESS' && IN_PROGRESS.includes(entry.state));
    case 'host':
      return hostOf(entry.url) === value.toLowerCase();
    case 'label':
      return entry.labels?.includes(value) ?? false;
    case 'fromDate':
      return entry.time >= Number(value);
    case 'toDate':
      return entry.time <= Number(value);
    case 'url':
      return entry.url === maskPassword(value);
    case 'messageId':
    case 'topicName':
    case 'queueName':
    case 'scheduleId':
    case 'flowControlKey':
      return entry[name] === value;
    default:
      return true;
  }
}

function hostOf(url: string): string | undefined {
  return URL.parse(url)?.host;
}
