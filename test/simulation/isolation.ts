/**
 * Simulates an attacking project that sends to hundreds of endpoints that never respond, and floods an endpoint that
 * another project also uses. The messages of the other project, and the attacker's messages to responsive endpoints, must
 * be sent promptly. When all attempts of the attack hang, messages to new endpoints, messages to an endpoint that refused
 * a connection once, and the retry after the refusal must be sent promptly, too (P9).
 */

import { SILENT_AFTER_MS } from '../../src/engine/lanes/in-flight.ts';
import type { PublishCommand } from '../../src/engine/messages/publish-command.ts';
import type { Claimed } from '../../src/engine/model.ts';
import type { EngineSettings } from '../../src/engine/settings.ts';
import { ENGINE_SETTINGS } from '../support/engine-settings.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import type { Attempt } from '../support/simulated-network.ts';
import { openDatabase } from './database.ts';
import { type Sabotage, type Violation, World } from './world.ts';

const ATTACKER = 1;
const OTHER = 2;
const HANGING_ORIGINS = 300;
const FLOOD = 200;
const PROBES = 200;
const LATER_PROBES = 60;
/** The maximum time from a message's due time to its attempt: a few transactions. */
const PROMPT_MS = 500;
/** The response time of the endpoint that both projects use. */
const SHARED_MS = 1_000;

export const ISOLATED: EngineSettings = {
  ...ENGINE_SETTINGS,
  inFlightMax: 40,
  silentMax: 400, // seven eighths of the limit are more than the attempts that hang
  inFlightBytesMax: 10_000_000,
  publishDelayTargetMs: 1e9,
  lazyFetchBytes: 3_000_000,
};

const SHARED = 'https://shared.example';
const REFUSED = 'https://refused-once.example';
const RETRY_DELAY_MS = 3_000;

interface Probe {
  messageId: string;
  dueAtMs: number;
  promptMs: number;
  text: string;
  /** The number of the retry to measure. Default: the first attempt is measured. */
  retried?: number;
}

/** Simulates the attack with `seed`; resolves to the broken promises. */
export async function simulateIsolation(
  seed: number,
  { settings: altered = {}, ...sabotage }: Sabotage & { settings?: Partial<EngineSettings> } = {},
): Promise<Violation[]> {
  const random = new SeededRandom(seed);
  const driver = await openDatabase();
  const world = new World({ random, drivers: [driver], settings: { ...ISOLATED, ...altered }, sabotage });
  const { clock, network } = world;
  try {
    void world.start();
    await clock.runUntil(() => world.engine !== undefined, 10_000);
    for (let index = 0; index < HANGING_ORIGINS; index += 1)
      network.setEndpoint(hanging(index), () => ({ kind: 'silence' }));
    network.setEndpoint(SHARED, () => ({ kind: 'answer', status: 200, afterMs: SHARED_MS }));
    for (const project of [ATTACKER, OTHER]) {
      network.setEndpoint(answering(project), () => ({ kind: 'answer', status: 200, afterMs: random.int(1, 40) }));
    }
    const probes: Probe[] = [];
    const send = async (projectId: number, origin: string, promptMs: number) => {
      const delayMs = random.chance(0.5) ? 0 : random.int(1, 2_000);
      const dueAtMs = clock.elapsedMs + delayMs;
      const [messageId] = await publish(world, projectId, [command(origin, { delayMs })]);
      if (messageId) probes.push({ messageId, dueAtMs, promptMs, text: `project ${projectId} to ${origin}` });
    };
    let isRefused = false;
    network.setEndpoint(REFUSED, () =>
      isRefused ? { kind: 'reset', afterMs: 0 } : { kind: 'answer', status: 200, afterMs: 20 },
    );
    // After these messages, both endpoints are healthy.
    for (const origin of [answering(ATTACKER), REFUSED]) await send(ATTACKER, origin, PROMPT_MS);
    await clock.advanceBy(5_000);

    const attack = Array.from({ length: HANGING_ORIGINS }, (_, index) =>
      command(hanging(index), {
        delayMs: random.chance(0.5) ? 0 : random.int(1, 10) * 1_000,
        timeoutMs: random.int(1, 15) * 60_000,
      }),
    );
    await publish(world, ATTACKER, attack);
    await publish(
      world,
      ATTACKER,
      Array.from({ length: FLOOD }, () => command(SHARED, { delayMs: random.int(0, 1) * 3_000 })),
    );
    for (let nth = 0; nth < PROBES; nth += 1) {
      const projectId = random.choose([ATTACKER, OTHER]);
      const lot = random.int(1, 10);
      if (lot === 1) await send(OTHER, SHARED, PROMPT_MS + SHARED_MS);
      else if (lot === 2) await send(OTHER, newcomer(world, nth), PROMPT_MS);
      else await send(projectId, answering(projectId), PROMPT_MS);
      await clock.advanceBy(random.int(1, 300));
    }
    await clock.advanceBy(HANGING_ORIGINS * 150);
    checkAllHang(world);
    isRefused = true;
    const refusedAtMs = clock.elapsedMs;
    const [messageId] = await publish(world, ATTACKER, [
      command(REFUSED, { delayMs: 0, retryDelayMs: RETRY_DELAY_MS }),
    ]);
    await clock.advanceBy(1_000);
    isRefused = false;
    const dueAtMs = refusedAtMs + RETRY_DELAY_MS;
    if (messageId)
      probes.push({ messageId, dueAtMs, promptMs: PROMPT_MS, text: 'the retry of what was refused', retried: 1 });
    for (let nth = 0; nth < LATER_PROBES; nth += 1) {
      const origin = random.choose([REFUSED, newcomer(world, PROBES + nth)]);
      await send(random.choose([ATTACKER, OTHER]), origin, PROMPT_MS);
      await clock.advanceBy(random.int(1, 300));
    }
    await clock.advanceBy(10_000);
    checkPromptness(world, probes);
    checkHanging(world);
    return world.violations;
  } finally {
    world.crashAll('the end');
    await driver.close();
  }
}

function hanging(index: number): string {
  return `https://hanging-${index}.example`;
}

function answering(projectId: number): string {
  return `https://answering-${projectId}.example`;
}

/** A new endpoint, whose health is unknown. */
function newcomer({ network }: World, nth: number): string {
  const origin = `https://newcomer-${nth}.example`;
  network.setEndpoint(origin, () => ({ kind: 'answer', status: 200, afterMs: 20 }));
  return origin;
}

export function command(
  origin: string,
  { delayMs, timeoutMs, retryDelayMs }: { delayMs: number; timeoutMs?: number; retryDelayMs?: number },
): PublishCommand {
  const settings = {
    dialect: 'upstash' as const,
    maxRetries: 0,
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(retryDelayMs !== undefined && { maxRetries: 1, retryDelayExpression: String(retryDelayMs) }),
  };
  const options = { method: 'POST' as const, header: {}, explicitHeader: {}, settings };
  return { url: `${origin}/hook`, body: new Uint8Array(10), options: { ...options, ...(delayMs > 0 && { delayMs }) } };
}

export async function publish(world: World, projectId: number, commands: PublishCommand[]): Promise<string[]> {
  let ids: string[] | undefined;
  const publishing = world.engine?.publish(projectId, commands).then((published) => {
    ids = published.flatMap((outcome) => (outcome === 'tooManyQueues' ? [] : [outcome.messageId]));
  });
  await world.clock.runUntil(() => ids !== undefined, 60_000);
  await publishing;
  return ids ?? [];
}

function checkPromptness(world: World, probes: readonly Probe[]): void {
  const byName = new Map<string, Attempt>();
  for (const attempt of world.network.attempts) {
    const name = `${attempt.messageId} ${attempt.retried}`;
    if (!byName.has(name)) byName.set(name, attempt);
  }
  for (const { messageId, dueAtMs, promptMs, text, retried = 0 } of probes) {
    const attempt = byName.get(`${messageId} ${retried}`);
    const startedAtMs = attempt ? (world.startOf.get(attempt)?.atMs ?? Infinity) : Infinity;
    if (startedAtMs - dueAtMs > promptMs)
      world.violate('P9', `${text} went out ${startedAtMs - dueAtMs} ms late`, messageId);
  }
}

/** Endpoints of unknown health use at most half of the slots; a project that is alone can use nearly all of that half. */
function checkHanging(world: World): void {
  const half = ISOLATED.inFlightMax / 2;
  const most = Math.max(
    ...world.starts.map(({ running, atMs }) => {
      const recent = world.starts.filter((start) => start.atMs <= atMs && atMs - start.atMs < SILENT_AFTER_MS);
      const holding = new Set(recent.map(({ attempt }) => attempt.claimed));
      return running.filter((claimed) => isHanging(claimed) && holding.has(claimed)).length;
    }),
  );
  if (most > half) world.violate('P9', `${most} slots for endpoints that never answered`);
  if (most < Math.floor((half * 7) / 8)) world.violate('P9', `only ${most} slots used while nobody else wanted any`);
}

/** Each endpoint that never responds has a request in flight. */
function checkAllHang(world: World): void {
  const hang = world.starts.at(-1)?.running.filter(isHanging).length ?? 0;
  if (hang < HANGING_ORIGINS) world.violate('P9', `only ${hang} attempts hang at a time`);
}

function isHanging({ message }: Claimed): boolean {
  return message.origin.startsWith('https://hanging');
}
