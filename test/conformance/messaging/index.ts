/** The sections of the checklist, in its order. */
import type { Section } from '../support/statement.ts';
import { callbacks } from './callbacks.ts';
import { cancel } from './cancel.ts';
import { cancelInFlight } from './cancel-in-flight.ts';
import { connections } from './connections.ts';
import { deadLetters } from './dead-letters.ts';
import { deduplication, lostDuplicates } from './deduplication.ts';
import { defectiveResponses } from './defective-responses.ts';
import { delivery } from './delivery.ts';
import { destinations } from './destinations.ts';
import { flowControl } from './flow-control.ts';
import { groups } from './groups.ts';
import { limits } from './limits.ts';
import { logs } from './logs.ts';
import { names } from './names.ts';
import { passwords } from './passwords.ts';
import { publish } from './publish.ts';
import { queues } from './queues.ts';
import { redirects } from './redirects.ts';
import { replays } from './replays.ts';
import { responses } from './responses.ts';
import { forward, retries } from './retries.ts';
import { schedules } from './schedules.ts';
import { signatures } from './signatures.ts';
import { transport } from './transport.ts';
export const MESSAGING: readonly Section[] = [
  transport,
  destinations,
  publish,
  delivery,
  retries,
  logs,
  deduplication,
  cancel,
  queues,
  groups,
  callbacks,
  signatures,
  schedules,
  deadLetters,
  flowControl,
  limits,
  forward,
  connections,
  names,
  lostDuplicates,
  redirects,
  defectiveResponses,
  responses,
  passwords,
  cancelInFlight,
  replays,
];
