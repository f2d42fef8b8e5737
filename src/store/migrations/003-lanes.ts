/**
 * Queues and flow-control keys: where their messages wait. A message that waits for a lane is in the index of that lane
 * and not in the due index, so that many of them delay no other message.
 *
 * Programs that do not know this step would deliver more than lanes allow.
 */
import type { SqlDialect } from '../driver.ts';
import type { Migration } from './migration.ts';

export const lanes: Migration = {
  number: 3,
  name: 'lanes',
  breaking: true,
  statements: ({ bigint, smallint, clustered, hot }: SqlDialect) => [
    'drop index messages_due',
    'drop index messages_parked',
    'drop index messages_claimed',
    // Which line an unclaimed message waits in; the numbers are in operations/lanes/lines.ts.
    'alter table messages rename column parked to line',
    `alter table messages add column queue_id ${bigint}`,
    // Order of acceptance within the queue.
    `alter table messages add column queue_position ${bigint}`,
    // The key of the message that took the slot: its own, or, for a callback, the key of the message it reports on.
    `alter table messages add column queue_slot ${bigint}`,
    'alter table messages add column flow_key text',

    'create index messages_due on messages (due_at_ms, key) where claim_token is null and line = 0',
    'create index messages_parked on messages (origin, due_at_ms, key) where claim_token is null and line = 1',
    'create index messages_flow on messages (project_id, flow_key, due_at_ms, key) where claim_token is null and line = 2',
    'create index messages_queued on messages (project_id, queue_id, queue_position) where claim_token is null and line = 3',
    'create index messages_held on messages (project_id, due_at_ms, key) where claim_token is null and line = 4',
    // The holders of slots are derived from these three, never counted up and down (P4).
    'create index messages_claimed on messages (project_id, key) where claim_token is not null',
    'create index messages_flow_slots on messages (project_id, flow_key) where claim_token is not null and flow_key is not null',
    // Messages that their key has released and that wait for their origin or project: they will hold the key's next
    // slots.
    'create index messages_flow_let_go on messages (project_id, flow_key) where claim_token is null and line in (1, 4) and flow_key is not null',
    // Together with the two above and `messages_flow`, this covers every place where a message of a key waits. With one
    // index for all of them, the planner would use it for the counts too, and each count would walk the whole wait
    // list.
    'create index messages_flow_queued on messages (project_id, flow_key) where claim_token is null and line = 3 and flow_key is not null',
    'create index messages_queue_slots on messages (project_id, queue_id, queue_slot) where queue_slot is not null',

    `create table queues (
  project_id ${bigint} not null,
  id ${bigint} not null,
  name text not null,
  parallelism ${bigint} not null,
  paused ${smallint} not null,
  next_position ${bigint} not null,
  created_at_ms ${bigint} not null,
  updated_at_ms ${bigint} not null,
  deleted ${smallint} not null,
  primary key (project_id, id)
)${hot}`,
    'create unique index queues_name on queues (project_id, name) where deleted = 0',
    'create index queues_deleted on queues (project_id, id) where deleted = 1',

    `create table flow_keys (
  project_id ${bigint} not null,
  key text not null,
  parallelism ${bigint},
  rate ${bigint},
  period_s ${bigint} not null,
  parallelism_pinned ${smallint} not null,
  rate_pinned ${smallint} not null,
  paused ${smallint} not null,
  window_started_at_ms ${bigint},
  window_count ${bigint} not null,
  used_at_ms ${bigint} not null,
  wake_at_ms ${bigint},
  primary key (project_id, key)
)${clustered}${hot}`,
    // Keys whose wait list must be looked at, and when.
    'create index flow_keys_wake on flow_keys (wake_at_ms, project_id, key) where wake_at_ms is not null',
    'create index flow_keys_used on flow_keys (used_at_ms)',

    "insert into numbers (name, next) values ('queues', 1)",
  ],
};
