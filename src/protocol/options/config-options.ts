/**
 * Defines the options of a message, one row each (contract M 4.2): everything about an option except its effect. The
 * groups decide which routes accept an option (`api/publishing/config-headers.ts`). The OpenAPI document lists the rows
 * in this order, and `options.ts` reads the settings of a group in this order.
 */
import { type TSchema, Type } from '@sinclair/typebox';
import { ApiError, invalidHeader } from '../errors.ts';
import { NEW_NAME_PATTERN } from '../names.ts';
import { parseRedaction } from '../redaction.ts';
import { parseFeatures } from '../workflow/generations.ts';
import type { RawOption, Scope } from './config-scopes.ts';
import { parseFlowControl } from './flow-control.ts';
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
  parseLabels,
  RUN_ID_LENGTH_MAX,
  runIdOf,
  timeoutOf,
  wholeNumberOf,
  wordOf,
} from './option-values.ts';
import type { AttemptSettings, FlowControl, MessageSettings } from './settings.ts';

type Options = Pick<Scope, 'options'>;

export interface ConfigOption<Value = unknown> extends OptionTraits {
  /** The header in the spelling of the official clients; the prefix `Waypost-` is also accepted. */
  name: string;
  meaning: string;
  /** Has at least one valid example. */
  schema: TSchema;
  /** The name in lower case, without its prefix. */
  key: string;
  /** The value as the client sent it. */
  raw: (scope: Options) => RawOption | undefined;
  /** The parsed value. Throws `ApiError` 400 that names the header. */
  read: (scope: Options) => Value;
}

interface OptionTraits {
  /** The member of the settings that holds the value. */
  setting?: keyof MessageSettings;
  /** A step of a run may set the option for itself. Other options come from the trigger of the run (contract W 6.6). */
  isForSteps?: true;
  /**
   * `retry`: a retry from the DLQ may replace the option (contract M 17.4). `run`: the resume or restart of a failed run
   * may replace it, too (contract W 21.2). `refused`: a retry, resume or restart with the option is rejected, since
   * silently ignoring the option would mislead. If absent, the option is ignored.
   */
  override?: 'run' | 'retry' | 'refused';
  /** Kinds of requests that reject the option, since it would have no effect. */
  notFor?: readonly RequestKind[];
  /** The member that shows the setting unchanged: `as` in messages and schedules, `inLogs` (if set) in log entries. */
  shown?: { as: string; schema: TSchema; inLogs?: string };
}

const REFUSALS = { enqueue: ' for queues', schedule: ' for schedules', trigger: ' for triggers', callback: '' };

type RequestKind = keyof typeof REFUSALS;

/** Throws `ApiError` 400 if the option is set for a kind of request that does not accept it. */
export function refuseFor(kind: string, { notFor, raw }: ConfigOption, scope: Options): void {
  const refusing = notFor?.find((each) => each === kind);
  const header = refusing && raw(scope)?.header;
  if (header) throw new ApiError('invalid_header', `${header} is not supported${REFUSALS[refusing]}`);
}

const PREFIX_LENGTH = 'Upstash-'.length;

function option<Value>(
  name: string,
  meaning: string,
  schema: TSchema,
  read: (raw: RawOption | undefined, scope: Options) => Value,
  traits: OptionTraits = {},
): ConfigOption<Value> {
  const key = name.slice(PREFIX_LENGTH).toLowerCase();
  const raw: ConfigOption['raw'] = ({ options }) => options.get(key);
  return { name, meaning, schema, key, raw, read: (scope) => read(raw(scope), scope), ...traits };
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
  return option(name, meaning, schema, (raw) => wordOf(raw, words));
}

function flag(name: string, meaning: string, traits?: OptionTraits): ConfigOption<boolean> {
  return option(name, meaning, Flag, booleanOf, traits);
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

/** Options of the attempts of every delivery, including callbacks. */
export const ATTEMPT_OPTIONS = {
  method: option('Upstash-Method', 'Method of the delivery; POST without it.', MethodSchema, methodOf, {
    override: 'retry',
  }),
  retries: option(
    'Upstash-Retries',
    'Attempts after the first one.',
    Type.Integer({ minimum: 0, examples: [5] }),
    wholeNumberOf,
    { setting: 'maxRetries', isForSteps: true, override: 'run' },
  ),
  retryDelay: option(
    'Upstash-Retry-Delay',
    'Milliseconds before a retry, as an expression of the retries made so far.',
    Type.String({ examples: ['1000 * (1 + retried)'] }),
    delayExpressionOf,
    {
      setting: 'retryDelayExpression',
      isForSteps: true,
      override: 'run',
      shown: { as: 'retryDelayExpression', inLogs: 'retryDelayExpr', schema: Type.String({ minLength: 1 }) },
    },
  ),
  timeout: option('Upstash-Timeout', 'Limit of one attempt, more than 0.', Duration, timeoutOf, {
    setting: 'timeoutMs',
    override: 'retry',
    shown: { as: 'timeout', schema: Type.Integer({ minimum: 1, description: 'milliseconds' }) },
  }),
};

const flowControlValue = option(
  'Upstash-Flow-Control-Value',
  'Limits of the key: attempts in flight (parallelism), attempts started (rate) a period.',
  Type.String({ examples: ['parallelism=3, rate=10, period=1m'] }),
  (raw) => raw,
  { override: 'run' },
);

function flowControlOf(key: RawOption | undefined, value: RawOption | undefined): FlowControl | undefined {
  if (key === undefined && value === undefined) return undefined;
  if (key === undefined || value === undefined) {
    const header = key?.header ?? value?.header ?? '';
    const missing = key === undefined ? header.replace(/Value$/, 'Key') : header.replace(/Key$/, 'Value');
    throw invalidHeader(header, `needs ${missing}`);
  }
  return parseFlowControl(key.value, value.value, value.header, key.header);
}

/** The other options of every delivery, which are read after the callbacks. */
export const DELIVERY_OPTIONS = {
  label: option(
    'Upstash-Label',
    'Labels to find the message by, separated by commas.',
    Type.String({ examples: ['welcome'] }),
    (raw) => {
      const labels = raw && parseLabels(raw.value, raw.header);
      return labels?.length ? labels : undefined;
    },
    { setting: 'labels', override: 'run' },
  ),
  flowControlKey: option(
    'Upstash-Flow-Control-Key',
    'Groups messages that share limits; needs the value header.',
    Type.String({ ...Name, examples: ['crm'] }),
    (key, scope) => flowControlOf(key, flowControlValue.raw(scope)),
    { setting: 'flowControl', isForSteps: true, override: 'run' },
  ),
  flowControlValue,
  redactFields: option(
    'Upstash-Redact-Fields',
    'What logs show only as a hash: body, headers or header[Name], separated by commas.',
    Type.String({ examples: ['body, header[Authorization]'] }),
    (raw) => raw && parseRedaction(raw.value, raw.header),
    { setting: 'redact', override: 'retry' },
  ),
};

/** Options of one publish. */
export const PUBLISH_OPTIONS = {
  notBefore: option(
    'Upstash-Not-Before',
    'Earliest delivery as a Unix time in seconds; wins over the delay.',
    Type.Integer({ minimum: 0, examples: [1_767_225_600] }),
    notBeforeOf,
    { override: 'run', notFor: ['enqueue', 'schedule', 'callback'] },
  ),
  deduplicationId: option(
    'Upstash-Deduplication-Id',
    'A second publish with this id makes no second message for a while.',
    Type.String({ maxLength: 255, pattern: '^[^:]*$', examples: ['order-42'] }),
    deduplicationIdOf,
    { override: 'refused' },
  ),
  contentBasedDeduplication: flag(
    'Upstash-Content-Based-Deduplication',
    'The same by destination, body and forwarded headers, when it is true.',
    { override: 'refused' },
  ),
  headerForward: flag('Upstash-Header-Forward', 'Delivers the other headers of this request too, when it is true.'),
};

/** Without `cron`, which creates a schedule, the other options have no effect. Named as in `PublishOptions`. */
export const SCHEDULE_OPTIONS = {
  cron: option(
    'Upstash-Cron',
    'Creates a schedule with these times: five fields, a macro or @every, in UTC or the zone of a prefix CRON_TZ=.',
    Type.String({ examples: ['*/15 * * * *', 'CRON_TZ=Europe/Berlin 30 7 * * MON-FRI', '@every 90m'] }),
    // A missing expression is reported as an empty expression (contract M 15.2).
    (raw) => raw?.value ?? '',
    { override: 'refused', notFor: ['enqueue', 'trigger'] },
  ),
  scheduleId: option(
    'Upstash-Schedule-Id',
    'Id of the schedule; one with this id is replaced.',
    Type.String({ ...Name, examples: ['nightly-report'] }),
    (raw) => newNameOf(raw, 'schedule id'),
  ),
  scheduleQueueName: option(
    'Upstash-Queue-Name',
    'Queue that the messages of the schedule are enqueued to.',
    Type.String({ ...Name, examples: ['reports'] }),
    (raw) => newNameOf(raw, 'queue name'),
  ),
  scheduleCatchUp: choice(
    'Waypost-Schedule-Catch-Up',
    'Messages for times that passed while the server was down: none, one for all of them, or one for each; default: one.',
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
};

/** Without `workflowInit`, with which libraries make a message part of a run, the other options have no effect. */
export const RUN_OPTIONS = {
  workflowInit: flag(
    'Upstash-Workflow-Init',
    'Begins a workflow run when it is true, and continues one when it is false.',
    { override: 'refused', notFor: ['enqueue', 'schedule'] },
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
    (raw) => {
      // Libraries that do not know the time send 0 or no number.
      const createdAtMs = Number(raw?.value);
      return Number.isSafeInteger(createdAtMs) && createdAtMs > 0 ? createdAtMs : undefined;
    },
  ),
  workflowInvoke: flag(
    'Upstash-Workflow-Invoke',
    'The body tells which step of which run waits for this one, when it is true.',
  ),
};

/** Options that ask the library of a triggered run to identify itself, and options with which the library does so. */
export const TRIGGER_OPTIONS = {
  workflowTriggerBySdk: flag(
    'Upstash-Workflow-Trigger-By-Sdk',
    'The library behind the URL makes itself known to a run that was triggered, when it is true.',
  ),
  workflowUnknownSdk: option(
    'Upstash-Workflow-Unknown-Sdk',
    'The first delivery of the run asks which library serves the URL.',
    Type.Union([Type.Literal('true')], { examples: ['true'] }),
    // The value has no meaning (contract W 5.3).
    (raw) => raw !== undefined,
  ),
  featureSet: option(
    'Upstash-Feature-Set',
    'What the library that receives the message can do, separated by commas.',
    Type.String({ examples: ['LazyFetch,InitialBody'] }),
    (raw) => raw && parseFeatures(raw.value),
  ),
};

export const OPTIONS = {
  ...ATTEMPT_OPTIONS,
  ...DELIVERY_OPTIONS,
  delay: option(
    'Upstash-Delay',
    'Earliest delivery, counted from now; with a schedule, from each trigger.',
    Duration,
    durationOf,
    { override: 'run', notFor: ['enqueue', 'callback'] },
  ),
  /** The URLs of a message's callbacks. A callback's other headers are options of the callback message. */
  callback: option(
    'Upstash-Callback',
    'URL that receives the outcome of every attempt, with its response.',
    Url,
    callbackUrlOf,
    {
      setting: 'callback',
      override: 'retry',
    },
  ),
  'failure-callback': option(
    'Upstash-Failure-Callback',
    'URL that is called once when the message is dead.',
    Url,
    callbackUrlOf,
    { setting: 'failureCallback', override: 'run' },
  ),
  ...PUBLISH_OPTIONS,
  ...SCHEDULE_OPTIONS,
  ...RUN_OPTIONS,
  ...TRIGGER_OPTIONS,
};

export const ALL_OPTIONS: readonly ConfigOption[] = Object.values(OPTIONS);

/** The members of `MessageSettings` that a step of a run may set for itself. */
export const ATTEMPT_SETTINGS = ALL_OPTIONS.flatMap(({ isForSteps, setting }) =>
  isForSteps && setting ? [setting as keyof AttemptSettings] : [],
);

/** Only the members of `settings` in `ATTEMPT_SETTINGS`. */
export function attemptSettingsOf<S extends Partial<AttemptSettings>>(
  settings: S,
): Pick<S, keyof S & keyof AttemptSettings> {
  const own = ATTEMPT_SETTINGS.filter((member) => settings[member] !== undefined);
  return Object.fromEntries(own.map((member) => [member, settings[member]])) as S;
}

/** The members of views that show settings unchanged. */
export const SHOWN_OPTIONS = ALL_OPTIONS.flatMap(({ setting, shown }) =>
  setting && shown ? [{ ...shown, setting }] : [],
);
