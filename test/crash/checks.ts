/**
 * Checks the promises of docs/architecture.md, as far as clients and endpoints can observe them. All harnesses that crash real
 * servers use these checks. Each check is named by its promise, and reports the messages that break it.
 */
import { judgeLanes } from './lane-checks.ts';
import { type CallbackKind, isSuccess, type Lane, type Ledger } from './ledger.ts';
import { repetitionsOf } from './repetitions.ts';

/** The server's own view of its messages, read when the load has ended. */
export interface FinalView {
  /** Ids in the DLQ. */
  dead: Set<string>;
  /** By message id: the logged final states (DELIVERED, FAILED, CANCELED), in order. */
  endings: Map<string, string[]>;
  /** By message id, for all logged messages: the number of attempts with a logged outcome. */
  attempts: Map<string, number>;
}

/** The messages or lanes with a problem, by promise and problem. */
export type Broken = Readonly<Record<string, readonly string[]>>;

export type Verdict = ReturnType<typeof check>;

export function check(ledger: Ledger, view: FinalView, lanes: readonly Lane[] = []) {
  const acked = ledger.acknowledged();
  const isDelivered = (id: string) => ledger.message(id)?.isDelivered === true;
  const { unexplained, repeatedAfterCrash } = repetitionsOf([...ledger.arrivals(), ...ledger.tellings()]);
  const { most, ...ofLanes } = judgeLanes(lanes, ledger.laneEvents());
  const { taken, buried, broken: ofCallbacks } = checkCallbacks(ledger, view);
  return {
    acked: acked.length,
    unknown: ledger.unknowns,
    delivered: acked.filter(isDelivered).length,
    repeatedAfterCrash,
    /** Callbacks that their endpoint accepted. */
    taken,
    /** Callbacks whose endpoint rejected every attempt. */
    buried,
    /** By lane: the maximum of concurrent messages or attempts. A lane that was never near its limit proves little. */
    most,
    broken: {
      'P1 lost': acked.filter((id) => !isDelivered(id) && !isAccountedFor(ledger, id, view)),
      'P2 unexpected': unexpected(ledger),
      'P2 not ended once': acked
        .filter((id) => view.endings.get(id)?.length !== 1)
        .map((id) => `${id}: ${view.endings.get(id)?.join(', ') ?? 'no ending'}`),
      ...ofCallbacks,
      'P4 over its parallelism': ofLanes.overParallelism,
      'P4 over its rate': ofLanes.overRate,
      'P4 not held back': ofLanes.notHeldBack,
      'P5 out of order': ofLanes.outOfOrder,
      'P7 repeated without a crash': unexplained,
    },
  };
}

/**
 * Whether the server accounts for an undelivered message: it is in the DLQ, a client took it from the DLQ, or it was
 * cancelled on request.
 */
function isAccountedFor(ledger: Ledger, id: string, view: FinalView): boolean {
  const { isTakenFromDlq, isCancelAsked } = ledger.message(id) ?? {};
  const isCanceled = view.endings.get(id)?.at(-1) === 'CANCELED';
  return view.dead.has(id) || isTakenFromDlq === true || (isCancelAsked === true && isCanceled);
}

/**
 * Messages that arrived although no client published them, and ids that no client received and that no unknown outcome
 * explains.
 */
function unexpected(ledger: Ledger): string[] {
  const found: string[] = [];
  const strangers = new Map<string, Set<string>>();
  for (const { tag, messageId } of ledger.arrivals()) {
    const publish = ledger.publishOf(tag);
    if (publish === undefined) found.push(`${messageId}: nobody published "${tag}"`);
    else if (!publish.acked.has(messageId)) strangers.set(tag, (strangers.get(tag) ?? new Set()).add(messageId));
  }
  for (const [tag, ids] of strangers) {
    if (ids.size > (ledger.publishOf(tag)?.unknown ?? 0)) found.push(`"${tag}" arrived as ${[...ids].join(', ')}`);
  }
  return found;
}

/** Each attempt that the logs record must have exactly one callback, and the callback must have a final state. */
function checkCallbacks(ledger: Ledger, view: FinalView) {
  const tellings = ledger.tellings();
  const idsByFact = new Map<string, Set<string>>();
  for (const { kind, sourceId, sourceRetried, messageId } of tellings) {
    const fact = factOf(kind, sourceId, sourceRetried);
    idsByFact.set(fact, (idsByFact.get(fact) ?? new Set()).add(messageId));
  }
  const facts = new Set(factsToTell(ledger, view));
  const taken = new Set(tellings.filter(({ status }) => isSuccess(status)).map(({ messageId }) => messageId));
  const refused = [...new Set(tellings.map(({ messageId }) => messageId))].filter((id) => !taken.has(id));
  return {
    taken: taken.size,
    buried: refused.filter((id) => view.dead.has(id)).length,
    broken: {
      'P2 callback lost': refused.filter((id) => !view.dead.has(id)),
      'P3 nobody was told of': [...facts].filter((fact) => !idsByFact.has(fact)),
      'P3 told twice of': [...idsByFact].filter(([, ids]) => ids.size > 1).map(([fact, ids]) => `${fact}: ${[...ids]}`),
      'P3 told of what is not logged': [...idsByFact.keys()].filter((fact) => !facts.has(fact)),
    },
  };
}

/** All callbacks that must exist according to the server's logs. */
function* factsToTell(ledger: Ledger, { attempts, endings }: FinalView): Generator<string> {
  for (const [id, kinds] of ledger.wishes()) {
    const recorded = attempts.get(id) ?? 0;
    for (let retried = 0; retried < recorded && kinds.includes('callback'); retried += 1) {
      yield factOf('callback', id, retried);
    }
    const isDead = endings.get(id)?.includes('FAILED') === true;
    if (isDead && kinds.includes('failureCallback')) yield factOf('failureCallback', id, recorded - 1);
  }
}

function factOf(kind: CallbackKind, sourceId: string, sourceRetried: number): string {
  return `${kind} of ${sourceId} retried ${sourceRetried}`;
}
