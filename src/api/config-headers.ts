/**
 * The config headers of a message: what the interface document shows (contract M 4.2), and what is not ignored.
 * `protocol/options.ts` reads and checks them; a test holds this table against what it reads.
 */
import { type TSchema, Type } from '@sinclair/typebox';
import { MethodSchema } from './schemas.ts';

export interface ConfigHeader {
  /** In the spelling of the official clients; each is read with the prefix `Waypost-` too. */
  name: string;
  meaning: string;
  /** With at least one example that is accepted. */
  schema: TSchema;
  /** Taken, and no parameter of the document: one of many names, or what libraries say that changes nothing. */
  isUnlisted?: true;
}

const DECIMAL = '\\d+(\\.\\d+)?';
const Duration = Type.String({
  $id: 'Duration',
  description: 'Numbers with the units ms, s, m, h and d, or a bare number of seconds.',
  pattern: `^(${DECIMAL}|(${DECIMAL}(ms|s|m|h|d))+)$`,
  examples: ['30s', '1d10h30m'],
});
const Flag = Type.Union([Type.Literal('true'), Type.Literal('false')], { examples: ['true'] });

function words(...all: string[]): TSchema {
  return Type.Union(
    all.map((word) => Type.Literal(word)),
    { examples: all },
  );
}

function header(name: string, meaning: string, schema: TSchema): ConfigHeader {
  return { name, meaning, schema };
}

function unlisted(name: string, meaning: string, example: string): ConfigHeader {
  return { ...header(name, meaning, Type.String({ examples: [example] })), isUnlisted: true };
}

/** What clients say of themselves, with whatever they ask. */
export const OF_EVERY_REQUEST: readonly ConfigHeader[] = ['Sdk', 'Platform', 'Framework', 'Runtime'].map((what) =>
  unlisted(`Upstash-Telemetry-${what}`, 'What the client runs as.', 'example@1.0.0'),
);

const NOT_BEFORE = header(
  'Upstash-Not-Before',
  'Earliest delivery as a Unix time in seconds; wins over the delay.',
  Type.Integer({ minimum: 0, examples: [1_767_225_600] }),
);

const HEADER_FORWARD = header(
  'Upstash-Header-Forward',
  'Delivers the other headers of this request too, when it is true.',
  Flag,
);

/** What means something for every delivery, a callback's too. */
const OF_EVERY_DELIVERY: readonly ConfigHeader[] = [
  header('Upstash-Method', 'Method of the delivery; POST without it.', MethodSchema),
  header('Upstash-Retries', 'Attempts after the first one.', Type.Integer({ minimum: 0, examples: [5] })),
  header(
    'Upstash-Retry-Delay',
    'Milliseconds before a retry, as an expression of the retries made so far.',
    Type.String({ examples: ['1000 * (1 + retried)'] }),
  ),
  header('Upstash-Timeout', 'Limit of one attempt, more than 0.', Duration),
  header(
    'Upstash-Label',
    'Labels to find the message by, separated by commas.',
    Type.String({ examples: ['welcome'] }),
  ),
  header(
    'Upstash-Flow-Control-Key',
    'Groups messages that share limits; needs the value header.',
    Type.String({ maxLength: 255, pattern: '^[A-Za-z0-9_.-]+$', examples: ['crm'] }),
  ),
  header(
    'Upstash-Flow-Control-Value',
    'Limits of the key: attempts in flight (parallelism), attempts started (rate) a period.',
    Type.String({ examples: ['parallelism=3, rate=10, period=1m'] }),
  ),
  header(
    'Upstash-Redact-Fields',
    'What logs show only as a hash: body, headers or header[Name], separated by commas.',
    Type.String({ examples: ['body, header[Authorization]'] }),
  ),
  unlisted('Upstash-Forward-Name', 'Delivered as the header Name.', 'value'),
];

/** What the workflow libraries say of each message and of its callbacks; the server knows it, or goes by something else. */
const OF_THE_LIBRARIES: readonly ConfigHeader[] = [
  unlisted('Upstash-Workflow-Url', 'Where the run is served: the destination.', 'https://example.com/workflow'),
  unlisted('Upstash-Workflow-Sdk-Version', 'Version of the protocol.', '1'),
];

/** The libraries say of a callback that it is one of the run; the server makes the callback, and knows. */
const OF_CALLBACKS_OF_RUNS: readonly ConfigHeader[] = [
  ...OF_THE_LIBRARIES,
  unlisted('Upstash-Workflow-RunId', 'Id of the run.', 'wfr_order-42'),
  unlisted('Upstash-Workflow-CreatedAt', 'When the run began.', '1767225600000'),
  unlisted('Upstash-Workflow-Init', 'Whether it begins a run.', 'false'),
  unlisted('Upstash-Workflow-CallType', 'What it is to the run.', 'fromCallback'),
  unlisted('Upstash-Feature-Set', 'What the library can do that receives it.', 'LazyFetch,InitialBody'),
];

/** The URL of a callback and the options of the message that it will become (contract M 9.4). */
function ofCallback(kind: 'Callback' | 'Failure-Callback', url: string): ConfigHeader[] {
  const options = [...OF_EVERY_DELIVERY, ...OF_CALLBACKS_OF_RUNS].map((option) => ({
    ...option,
    name: option.name.replace('Upstash-', `Upstash-${kind}-`),
    meaning: `Of the ${kind.toLowerCase().replace('-', ' ')}. ${option.meaning}`,
  }));
  const schema = Type.String({ pattern: '^[Hh][Tt][Tt][Pp][Ss]?://', examples: ['https://example.com/done'] });
  return [header(`Upstash-${kind}`, url, schema), ...options];
}

/** What means something for a message that is published again, too, and again and again. */
const OF_EVERY_MESSAGE: readonly ConfigHeader[] = [
  ...OF_EVERY_DELIVERY,
  header('Upstash-Delay', 'Earliest delivery, counted from now; with a schedule, from each trigger.', Duration),
  ...ofCallback('Callback', 'URL that is told of every attempt, and of its answer.'),
  ...ofCallback('Failure-Callback', 'URL that is told once when the message is dead.'),
];

const Name = { maxLength: 255, pattern: '^[A-Za-z0-9_.-]+$' };

/** What makes a publish a schedule creation, and the others mean something only beside it. */
const OF_A_SCHEDULE: readonly ConfigHeader[] = [
  header(
    'Upstash-Cron',
    'Creates a schedule with these times: five fields, a macro or @every, in UTC or the zone of a prefix CRON_TZ=.',
    Type.String({ examples: ['*/15 * * * *', 'CRON_TZ=Europe/Berlin 30 7 * * MON-FRI', '@every 90m'] }),
  ),
  header(
    'Upstash-Schedule-Id',
    'Id of the schedule; one with this id is replaced.',
    Type.String({ ...Name, examples: ['nightly-report'] }),
  ),
  header(
    'Upstash-Queue-Name',
    'Queue that the messages of the schedule are enqueued to.',
    Type.String({ ...Name, examples: ['reports'] }),
  ),
  header(
    'Waypost-Schedule-Catch-Up',
    'What becomes of times that passed while the server was down: no message, one for all of them, or one each; one without it.',
    words('skip', 'one', 'all'),
  ),
  header(
    'Waypost-Schedule-Overlap',
    'Whether the schedule is triggered while a message of the trigger before is unfinished; allow without it.',
    words('allow', 'skip'),
  ),
];

const RUN_ID = header(
  'Upstash-Workflow-RunId',
  'Id of the workflow run; one is made for a run that begins without it.',
  Type.String({ maxLength: 1_024, examples: ['wfr_order-42'] }),
);

const CREATED_AT = header(
  'Upstash-Workflow-CreatedAt',
  'When the run began, in milliseconds: tells it from an earlier one with the same id.',
  Type.Integer({ minimum: 0, examples: [1_767_225_600_000] }),
);

/** What a library that a run was triggered at says of itself, and what asks it to. */
const OF_A_TRIGGER: readonly ConfigHeader[] = [
  header(
    'Upstash-Workflow-Trigger-By-Sdk',
    'The library behind the URL makes itself known to a run that was triggered, when it is true.',
    Flag,
  ),
  header(
    'Upstash-Workflow-Unknown-Sdk',
    'The first delivery of the run asks which library serves the URL.',
    words('true'),
  ),
  header(
    'Upstash-Feature-Set',
    'What the library that receives the message can do, separated by commas.',
    Type.String({ examples: ['LazyFetch,InitialBody'] }),
  ),
  ...OF_THE_LIBRARIES,
];

/** What makes a message one of a workflow run; the libraries send it, and the others mean something only beside the first. */
const OF_A_RUN: readonly ConfigHeader[] = [
  header('Upstash-Workflow-Init', 'Begins a workflow run when it is true, and continues one when it is false.', Flag),
  RUN_ID,
  header(
    'Upstash-Workflow-CallType',
    'What continues the run: a step, a call to somebody else, or settings of a step.',
    words('step', 'toCallback', 'stepConfig'),
  ),
  CREATED_AT,
  header(
    'Upstash-Workflow-Invoke',
    'The body tells which step of which run waits for this one, when it is true.',
    Flag,
  ),
  ...OF_A_TRIGGER,
];

/** Read by a wait, which is a message to come. */
export const WAIT_HEADERS: readonly ConfigHeader[] = [...OF_A_RUN, ...OF_EVERY_MESSAGE];

/** Read by the end of a run. */
export const RUN_END_HEADERS: readonly ConfigHeader[] = [CREATED_AT];

/** Read by the creation of a schedule. */
export const SCHEDULE_HEADERS: readonly ConfigHeader[] = [...OF_A_SCHEDULE, ...OF_EVERY_MESSAGE, HEADER_FORWARD];

/** Read by a publish. */
export const PUBLISH_HEADERS: readonly ConfigHeader[] = [
  ...OF_EVERY_MESSAGE,
  NOT_BEFORE,
  header(
    'Upstash-Deduplication-Id',
    'A second publish with this id makes no second message for a while.',
    Type.String({ maxLength: 255, pattern: '^[^:]*$', examples: ['order-42'] }),
  ),
  header(
    'Upstash-Content-Based-Deduplication',
    'The same by destination, body and forwarded headers, when it is true.',
    Flag,
  ),
  HEADER_FORWARD,
  ...OF_A_SCHEDULE,
  ...OF_A_RUN,
];

/** Read by an enqueue: a queue decides itself when its messages go out (contract M 12.7). */
export const ENQUEUE_HEADERS: readonly ConfigHeader[] = PUBLISH_HEADERS.filter(
  (known) => known.name !== 'Upstash-Delay' && known !== NOT_BEFORE && ![...OF_A_SCHEDULE, ...OF_A_RUN].includes(known),
);

/** Read by the trigger of a workflow run, which speaks the rest of the workflow protocol itself. */
export const TRIGGER_HEADERS: readonly ConfigHeader[] = [
  RUN_ID,
  ...OF_EVERY_MESSAGE.filter(({ name }) => !name.startsWith('Upstash-Callback')),
  NOT_BEFORE,
  HEADER_FORWARD,
  ...OF_A_TRIGGER,
];

/** Read by a DLQ retry: each replaces what the dead message had (contract M 17.4). */
export const RETRY_HEADERS: readonly ConfigHeader[] = [...OF_EVERY_MESSAGE, NOT_BEFORE];

const FIXED_BY_A_TRIGGER = /^Upstash-(Retries|Retry-Delay|Delay|Label|Flow-Control-(Key|Value)|Failure-Callback.*)$/;

/** Read by the resume and the restart of a failed run: each replaces what the run was triggered with (contract W 21.2). */
export const RUN_OVERRIDE_HEADERS: readonly ConfigHeader[] = RETRY_HEADERS.filter(
  (known) => FIXED_BY_A_TRIGGER.test(known.name) || known === NOT_BEFORE,
);

/** The same for a single run. */
export const SINGLE_RUN_OVERRIDE_HEADERS: readonly ConfigHeader[] = [
  ...RUN_OVERRIDE_HEADERS,
  header(
    'Upstash-Workflow-RunId',
    'Id of the new run; a random one without it.',
    Type.String({ examples: ['wfr_again'] }),
  ),
];
