/**
 * The options of a message, one row each (contract M 4.2): the header's name, its description in the interface
 * document, and how its value is read. `options.ts` says in which order options are read, and which of them a request
 * may have.
 */
import { type TSchema, Type } from '@sinclair/typebox';
import type { Given, Scope } from './config-scopes.ts';
import { parseLabels } from './labels.ts';
import { NEW_NAME_PATTERN } from './names.ts';
import {
  booleanOf,
  callbackUrlOf,
  deduplicationIdOf,
  delayExpressionOf,
  durationOf,
  METHODS,
  methodOf,
  newNameOf,
  notBeforeOf,
  RUN_ID_LENGTH_MAX,
  runIdOf,
  timeoutOf,
  wholeNumberOf,
  wordOf,
} from './option-values.ts';
import { parseRedaction } from './redaction.ts';
import { parseFeatures } from './workflow/generations.ts';

export interface ConfigOption<Value = unknown> {
  /** In the spelling of the official clients; each is read with the prefix `Waypost-` too. */
  name: string;
  meaning: string;
  /** With at least one example that is accepted. */
  schema: TSchema;
  /** The name in lower case, without its prefix. */
  key: string;
  /** The value as given. */
  given: (scope: Pick<Scope, 'options'>) => Given | undefined;
  /** The value as read. Throws `ApiError` 400 that names the header. */
  of: (scope: Pick<Scope, 'options'>) => Value;
}

const PREFIX_LENGTH = 'Upstash-'.length;

function option<Value>(
  name: string,
  meaning: string,
  schema: TSchema,
  read: (given: Given | undefined) => Value,
): ConfigOption<Value> {
  const key = name.slice(PREFIX_LENGTH).toLowerCase();
  const given: ConfigOption['given'] = ({ options }) => options.get(key);
  return { name, meaning, schema, key, given, of: (scope) => read(given(scope)) };
}

/** One of `words`. */
function choice<const Word extends string>(
  name: string,
  meaning: string,
  ...words: readonly Word[]
): ConfigOption<Word | undefined> {
  const schema = Type.Union(
    words.map((word) => Type.Literal(word)),
    { examples: words },
  );
  return option(name, meaning, schema, (given) => wordOf(given, words));
}

function flag(name: string, meaning: string): ConfigOption<boolean> {
  return option(name, meaning, Flag, booleanOf);
}

const DECIMAL = '\\d+(\\.\\d+)?';
const Duration = Type.String({
  $id: 'Duration',
  description: 'Numbers with the units ms, s, m, h and d, or a bare number of seconds.',
  pattern: `^(${DECIMAL}|(${DECIMAL}(ms|s|m|h|d))+)$`,
  examples: ['30s', '1d10h30m'],
});
const Flag = Type.Union([Type.Literal('true'), Type.Literal('false')], { examples: ['true'] });
const Name = { maxLength: 255, pattern: NEW_NAME_PATTERN };
const Url = Type.String({ pattern: '^[Hh][Tt][Tt][Pp][Ss]?://', examples: ['https://example.com/done'] });
export const MethodSchema = Type.Union(
  METHODS.map((name) => Type.Literal(name)),
  { $id: 'Method', examples: ['POST'] },
);

export const OPTIONS = {
  method: option('Upstash-Method', 'Method of the delivery; POST without it.', MethodSchema, methodOf),
  retries: option(
    'Upstash-Retries',
    'Attempts after the first one.',
    Type.Integer({ minimum: 0, examples: [5] }),
    wholeNumberOf,
  ),
  retryDelay: option(
    'Upstash-Retry-Delay',
    'Milliseconds before a retry, as an expression of the retries made so far.',
    Type.String({ examples: ['1000 * (1 + retried)'] }),
    delayExpressionOf,
  ),
  timeout: option('Upstash-Timeout', 'Limit of one attempt, more than 0.', Duration, timeoutOf),
  label: option(
    'Upstash-Label',
    'Labels to find the message by, separated by commas.',
    Type.String({ examples: ['welcome'] }),
    (given) => given && parseLabels(given.value, given.header),
  ),
  flowControlKey: option(
    'Upstash-Flow-Control-Key',
    'Groups messages that share limits; needs the value header.',
    Type.String({ ...Name, examples: ['crm'] }),
    (given) => given,
  ),
  flowControlValue: option(
    'Upstash-Flow-Control-Value',
    'Limits of the key: attempts in flight (parallelism), attempts started (rate) a period.',
    Type.String({ examples: ['parallelism=3, rate=10, period=1m'] }),
    (given) => given,
  ),
  redactFields: option(
    'Upstash-Redact-Fields',
    'What logs show only as a hash: body, headers or header[Name], separated by commas.',
    Type.String({ examples: ['body, header[Authorization]'] }),
    (given) => given && parseRedaction(given.value, given.header),
  ),
  delay: option(
    'Upstash-Delay',
    'Earliest delivery, counted from now; with a schedule, from each trigger.',
    Duration,
    durationOf,
  ),
  notBefore: option(
    'Upstash-Not-Before',
    'Earliest delivery as a Unix time in seconds; wins over the delay.',
    Type.Integer({ minimum: 0, examples: [1_767_225_600] }),
    notBeforeOf,
  ),
  headerForward: flag('Upstash-Header-Forward', 'Delivers the other headers of this request too, when it is true.'),
  deduplicationId: option(
    'Upstash-Deduplication-Id',
    'A second publish with this id makes no second message for a while.',
    Type.String({ maxLength: 255, pattern: '^[^:]*$', examples: ['order-42'] }),
    deduplicationIdOf,
  ),
  contentBasedDeduplication: flag(
    'Upstash-Content-Based-Deduplication',
    'The same by destination, body and forwarded headers, when it is true.',
  ),
  /** The URLs of a message's callbacks; the callbacks' other headers are options of the messages that they become. */
  callback: option('Upstash-Callback', 'URL that is told of every attempt, and of its answer.', Url, callbackUrlOf),
  'failure-callback': option(
    'Upstash-Failure-Callback',
    'URL that is told once when the message is dead.',
    Url,
    callbackUrlOf,
  ),
  cron: option(
    'Upstash-Cron',
    'Creates a schedule with these times: five fields, a macro or @every, in UTC or the zone of a prefix CRON_TZ=.',
    Type.String({ examples: ['*/15 * * * *', 'CRON_TZ=Europe/Berlin 30 7 * * MON-FRI', '@every 90m'] }),
    // A missing expression is reported as an empty one (contract M 15.2).
    (given) => given?.value ?? '',
  ),
  scheduleId: option(
    'Upstash-Schedule-Id',
    'Id of the schedule; one with this id is replaced.',
    Type.String({ ...Name, examples: ['nightly-report'] }),
    (given) => newNameOf(given, 'schedule id'),
  ),
  queueName: option(
    'Upstash-Queue-Name',
    'Queue that the messages of the schedule are enqueued to.',
    Type.String({ ...Name, examples: ['reports'] }),
    (given) => newNameOf(given, 'queue name'),
  ),
  scheduleCatchUp: choice(
    'Waypost-Schedule-Catch-Up',
    'What becomes of times that passed while the server was down: no message, one for all of them, or one each; one without it.',
    'skip',
    'one',
    'all',
  ),
  scheduleOverlap: choice(
    'Waypost-Schedule-Overlap',
    'Whether the schedule is triggered while a message of the trigger before is unfinished; allow without it.',
    'allow',
    'skip',
  ),
  workflowInit: flag(
    'Upstash-Workflow-Init',
    'Begins a workflow run when it is true, and continues one when it is false.',
  ),
  workflowRunId: option(
    'Upstash-Workflow-RunId',
    'Id of the workflow run; one is made for a run that begins without it.',
    Type.String({ maxLength: RUN_ID_LENGTH_MAX, examples: ['wfr_order-42'] }),
    runIdOf,
  ),
  workflowCallType: choice(
    'Upstash-Workflow-CallType',
    'What continues the run: a step, a call to somebody else, or settings of a step.',
    'step',
    'toCallback',
    'stepConfig',
  ),
  workflowCreatedAt: option(
    'Upstash-Workflow-CreatedAt',
    'When the run began, in milliseconds: tells it from an earlier one with the same id.',
    Type.Integer({ minimum: 0, examples: [1_767_225_600_000] }),
    (given) => {
      // Libraries that do not know the time send 0 or no number.
      const createdAtMs = Number(given?.value);
      return Number.isSafeInteger(createdAtMs) && createdAtMs > 0 ? createdAtMs : undefined;
    },
  ),
  workflowInvoke: flag(
    'Upstash-Workflow-Invoke',
    'The body tells which step of which run waits for this one, when it is true.',
  ),
  workflowTriggerBySdk: flag(
    'Upstash-Workflow-Trigger-By-Sdk',
    'The library behind the URL makes itself known to a run that was triggered, when it is true.',
  ),
  workflowUnknownSdk: option(
    'Upstash-Workflow-Unknown-Sdk',
    'The first delivery of the run asks which library serves the URL.',
    Type.Union([Type.Literal('true')], { examples: ['true'] }),
    // The value has no meaning (contract W 5.3).
    (given) => given !== undefined,
  ),
  featureSet: option(
    'Upstash-Feature-Set',
    'What the library that receives the message can do, separated by commas.',
    Type.String({ examples: ['LazyFetch,InitialBody'] }),
    (given) => given && parseFeatures(given.value),
  ),
};
