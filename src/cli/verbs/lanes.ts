/** `waypost queues` and `waypost keys`: manages queues and flow-control keys. */
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
    meaning: 'Creates a queue, or changes its parallelism.',
    options: { '--parallelism <number>': 'Messages that are delivered at the same time.' },
    example: 'queues save invoices --parallelism 3',
    async run(call) {
      const parallelism = call.values('parallelism').at(-1);
      const json = { queueName: call.words[0], ...(parallelism !== undefined && { parallelism: Number(parallelism) }) };
      await call.server.ask('saveQueue', { json });
      if (!call.isJson) call.terminal.print(`Saved ${call.words[0]}.\n`);
      return EXIT.ok;
    },
  },
  pause: action('queues', 'pauseQueue', '<queue>', 'Paused', 'Stops delivering its messages; running attempts finish.'),
  resume: action('queues', 'resumeQueue', '<queue>', 'Resumed', 'Continues to deliver its messages.'),
  delete: action('queues', 'deleteQueue', '<queue>', 'Deleted', 'Deletes the queue and all its messages.', true),
});

export const keys = commandOf('keys', {
  list: {
    meaning: 'Lists flow-control keys with the usage of their limits.',
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
  pause: action('keys', 'pauseFlowControlKey', '<key>', 'Paused', 'Stops starting its messages until it is resumed.'),
  resume: action('keys', 'resumeFlowControlKey', '<key>', 'Resumed', 'Continues to start its messages.'),
  pin: {
    ...action(
      'keys',
      'pinFlowControlKey',
      '<key>',
      'Pinned',
      'Fixes the limits, so that messages no longer change them.',
    ),
    filtersOf: 'pinFlowControlKey',
    example: 'keys pin crm --parallelism 3 --rate 10 --period 60',
  },
  unpin: {
    ...action('keys', 'unpinFlowControlKey', '<key>', 'Unpinned', 'Allows messages to change the limits again.'),
    filtersOf: 'unpinFlowControlKey',
    example: 'keys unpin crm --parallelism true --rate true',
  },
  reset: action('keys', 'resetFlowControlKey', '<key>', 'Reset', 'Resets the usage of its limits to zero.'),
});
