/** Reads the config headers of a DLQ retry, which replace options of the dead message or the failed run (contract M 17.4, W 21.2). */
import type { DeadRetryOverride } from '../../engine/messages/dead-retry.ts';
import type { RunOverride } from '../../engine/runs/dead/dead-run-store.ts';
import { ApiError } from '../../protocol/errors.ts';
import { trimBlanks } from '../../protocol/headers.ts';
import { hasConfigPrefix, readConfigName } from '../../protocol/options/config-names.ts';
import { ALL_OPTIONS, OPTIONS } from '../../protocol/options/config-options.ts';
import { newRunIdOf } from '../../protocol/options/option-values.ts';
import { readPublishOptions } from '../../protocol/options/options.ts';
import { checkCallbacks } from '../publishing/destinations.ts';
import type { Call, Services } from '../route.ts';

/** The options to replace; an absent option keeps its stored value. Rejects with `ApiError`. */
export async function readRetryOverride(
  { projectId, rawHeaders }: Pick<Call, 'projectId' | 'rawHeaders'>,
  { quotas, clock, checkDestination }: Pick<Services, 'quotas' | 'clock' | 'checkDestination'>,
): Promise<DeadRetryOverride> {
  const { given, configHeaders } = splitConfigHeaders(rawHeaders);
  if (given.size === 0) return {};
  const input = { rawHeaders: configHeaders, queryConfig: [], tokenInQuery: false, proxyHeaders: [] };
  const options = readPublishOptions(input, 'publish', quotas, clock.nowMs());
  for (const { key, override } of ALL_OPTIONS) {
    const header = override === 'refused' ? given.get(key) : undefined;
    if (header !== undefined) throw new ApiError('invalid_header', `${header} is not supported for DLQ retries`);
  }
  await checkCallbacks(options.settings, checkDestination(projectId));
  const { method, explicitHeader, settings, delayMs, notBeforeMs } = options;
  const { dialect: _, maxRetries, ...replaced } = settings;
  return {
    ...replaced,
    ...(given.has('method') && { method }),
    ...(given.has('forward') && { header: explicitHeader }),
    ...(given.has('retries') && { maxRetries }),
    ...(delayMs !== undefined && { delayMs }),
    ...(notBeforeMs !== undefined && { notBeforeMs }),
  };
}

/**
 * `given`: the header of each option that has a value. `configHeaders`: these headers with their values. Other headers,
 * such as the content type, belong to the request, whose body is ignored (contract M 22.28).
 */
function splitConfigHeaders(rawHeaders: readonly string[]): { given: Map<string, string>; configHeaders: string[] } {
  const given = new Map<string, string>();
  const configHeaders: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const value = rawHeaders[i + 1] ?? '';
    if (!hasConfigPrefix(name) || trimBlanks(value) === '') continue;
    const { path, option, display } = readConfigName(name);
    configHeaders.push(name, value);
    given.set([...path, option].join('-'), display);
  }
  return { given, configHeaders };
}

/** Options that can be replaced for a message, but not for a run: the steps of the run set these options. */
const MESSAGE_ONLY_OPTIONS: readonly [string, string][] = [
  ['method', OPTIONS.method.name],
  ['header', 'Upstash-Forward'],
  ...ALL_OPTIONS.flatMap(({ name, setting, override }): [string, string][] =>
    override === 'retry' && setting ? [[setting, name]] : [],
  ),
];

/** The options to replace, and the id of the new run; an absent option keeps its value. Rejects with `ApiError`. */
export async function readRunOverride(
  { projectId, rawHeaders }: Pick<Call, 'projectId' | 'rawHeaders'>,
  services: Pick<Services, 'quotas' | 'clock' | 'checkDestination'>,
): Promise<RunOverride> {
  const { runId, others } = splitRunId(rawHeaders);
  const given = await readRetryOverride({ projectId, rawHeaders: others }, services);
  for (const [member, header] of MESSAGE_ONLY_OPTIONS) {
    if (member in given) throw new ApiError('invalid_header', `${header} is not supported for failed runs`);
  }
  return { ...(given as RunOverride), ...(runId !== undefined && { runId }) };
}

/** The id of the new run, verbatim, and the other headers. */
function splitRunId(rawHeaders: readonly string[]): { runId?: string; others: string[] } {
  const others: string[] = [];
  let runId: string | undefined;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const value = trimBlanks(rawHeaders[i + 1] ?? '');
    if (!isNewRunId(name)) {
      others.push(name, value);
    } else if (value !== '') {
      runId = newRunIdOf({ value, header: readConfigName(name).display });
    }
  }
  return runId === undefined ? { others } : { runId, others };
}

/** Whether the header has the id of the new run. Libraries also send a run id for the failure callback, which is ignored. */
function isNewRunId(name: string): boolean {
  if (!hasConfigPrefix(name)) return false;
  const { path, option } = readConfigName(name);
  return path.length === 0 && option === OPTIONS.workflowRunId.key;
}
