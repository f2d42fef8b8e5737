/** `waypost queues` and `waypost keys`: the lines that messages stand in, and the limits they share. */
import { EXIT } from '../command.ts';
import { readList } from '../http/pages.ts';
import { action, listed, read } from '../http/simple.ts';
import { commandOf, showTable } from '../http/verb.ts';

interface Queue {
  name: string;
  parallelism: number;
  paused: boolean;
  lag: number;
}

interface FlowControlKey {
  flowControlKey: string;
  waitListSize: number;
  parallelismMax: number;
  parallelismCount: number;
  rateMax: number;
  rateCount: number;
  ratePeriod: number;
  isPaused: boolean;
}

export const queues = commandOf('queues', {
  list: listed<Queue>('queues', 'listQueues', [
    ['QUEUE', ({ name }) => name],
    ['WAITING', ({ lag }) => lag],
    ['PARALLELISM', ({ parallelism }) => parallelism],
    ['STATE', ({ paused }) => (paused ? 'paused' : 'running')],
  ]),
  show: read('queues', 'getQueue', '<queue>'),
  save: {
    words: '<queue>',
    meaning: 'Makes a queue, or changes how many of its messages are delivered at a time.',
    options: { '--parallelism <number>': 'How many at a time.' },
    example: 'queues save invoices --parallelism 3',
    async run(call) {
      const parallelism = call.values('parallelism').at(-1);
      const json = { queueName: call.words[0], ...(parallelism !== undefined && { parallelism: Number(parallelism) }) };
      await call.server.ask('saveQueue', { json });
      if (!call.isJson) call.terminal.print(`Saved ${call.words[0]}.\n`);
      return EXIT.ok;
    },
  },
  pause: action('queues', 'pauseQueue', '<queue>', 'Paused', 'Holds its messages back; what is under way is finished.'),
  resume: action('queues', 'resumeQueue', '<queue>', 'Resumed', 'Delivers its messages again.'),
  delete: action('queues', 'deleteQueue', '<queue>', 'Deleted', 'Deletes the queue with all messages in it.', true),
});

export const keys = commandOf('keys', {
  list: {
    meaning: 'The flow-control keys and how much of their limits is used.',
    filtersOf: 'listFlowControlKeys',
    example: 'keys list --search crm',
    run: async (call) =>
      showTable(call, await readList<FlowControlKey>(call, 'listFlowControlKeys', 'flowControls', 100), [
        ['KEY', (key) => key.flowControlKey],
        ['WAITING', (key) => key.waitListSize],
        ['PARALLELISM', (key) => (key.parallelismMax > 0 ? `${key.parallelismCount} of ${key.parallelismMax}` : '-')],
        ['RATE', (key) => (key.rateMax > 0 ? `${key.rateCount} of ${key.rateMax} in ${key.ratePeriod}s` : '-')],
        ['STATE', (key) => (key.isPaused ? 'paused' : 'running')],
      ]),
  },
  show: read('keys', 'getFlowControlKey', '<key>'),
  pause: action('keys', 'pauseFlowControlKey', '<key>', 'Paused', 'Starts none of its messages until it is resumed.'),
  resume: action('keys', 'resumeFlowControlKey', '<key>', 'Resumed', 'Starts its messages again.'),
  pin: {
    ...action('keys', 'pinFlowControlKey', '<key>', 'Pinned', 'Sets limits that messages do not change any more.'),
    filtersOf: 'pinFlowControlKey',
    example: 'keys pin crm --parallelism 3 --rate 10 --period 60',
  },
  unpin: {
    ...action('keys', 'unpinFlowControlKey', '<key>', 'Unpinned', 'Lets messages change the limits again.'),
    filtersOf: 'unpinFlowControlKey',
    example: 'keys unpin crm --parallelism true --rate true',
  },
  reset: action('keys', 'resetFlowControlKey', '<key>', 'Reset', 'Forgets what has been used of its limits.'),
});
