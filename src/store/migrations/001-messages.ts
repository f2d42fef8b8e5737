/**
 * Messages, their content, their logs, the DLQ, deduplication, projects and number sequences.
 *
 * The direct way of a message (accepted as claimed, then delivered) touches `messages` by key, `contents` once and
 * `logs` three times. The only partial index it touches is `messages_claimed`, which is as small as the number of
 * messages in flight.
 */
import type { SqlDialect } from '../driver.ts';
import type { Migration } from './migration.ts';

export const messages: Migration = {
  number: 1,
  name: 'messages',
  breaking: true,
  statements: ({ bigint, smallint, bytes, clustered, hot, passing }: SqlDialect) => [
    // Only unfinished messages, and only what dispatching needs of them.
    `create table messages (
  key ${bigint} primary key,
  project_id ${bigint} not null,
  origin text not null,
  due_at_ms ${bigint} not null,
  bytes ${bigint} not null,
  retried ${bigint} not null,
  claimed_at_ms ${bigint},
  claim_token ${bigint},
  worker text,
  parked ${smallint} not null,
  cancel_requested_at_ms ${bigint}
)${hot}`,
    'create index messages_due on messages (due_at_ms, key) where claim_token is null and parked = 0',
    'create index messages_parked on messages (origin, due_at_ms, key) where claim_token is null and parked = 1',
    // With it a start gives back what was in flight without reading the messages that wait.
    'create index messages_claimed on messages (key) where claim_token is not null',

    // What never changes after publish: shared by the message, its DLQ entry and its logs, never rewritten.
    `create table contents (
  key ${bigint} primary key,
  project_id ${bigint} not null,
  id text not null,
  url text not null,
  origin text not null,
  path text not null,
  method text not null,
  header text,
  created_at_ms ${bigint} not null,
  not_before_ms ${bigint} not null,
  caller_ip text,
  topic_name text,
  queue_name text,
  schedule_id text,
  flow_control_key text,
  labels text,
  settings text not null,
  body ${bytes}
)${passing}`,

    `create table logs (
  project_id ${bigint} not null,
  at_ms ${bigint} not null,
  seq ${bigint} not null,
  message_key ${bigint} not null,
  state ${smallint} not null,
  primary key (project_id, at_ms, seq)
)${clustered}`,
    'create index logs_message on logs (message_key)',
    // Only of events that say more than their state; seq is unique over all logs.
    `create table log_details (
  seq ${bigint} primary key,
  error text,
  next_delivery_at_ms ${bigint},
  response_status ${bigint},
  response_header text,
  response_body ${bytes}
)`,

    `create table dead (
  project_id ${bigint} not null,
  failed_at_ms ${bigint} not null,
  key ${bigint} not null,
  retried ${bigint} not null,
  response_status ${bigint} not null,
  response_header text,
  response_body ${bytes},
  primary key (project_id, failed_at_ms, key)
)${passing}`,
    'create index dead_key on dead (key)',

    `create table deduplications (
  project_id ${bigint} not null,
  hash text not null,
  message_id text not null,
  expires_at_ms ${bigint} not null,
  primary key (project_id, hash)
)${clustered}${passing}`,
    'create index deduplications_expiry on deduplications (expires_at_ms)',

    `create table projects (
  id ${bigint} primary key,
  name text not null unique,
  signing_current text not null,
  signing_next text not null,
  created_at_ms ${bigint} not null
)`,
    `create table tokens (
  hash text primary key,
  project_id ${bigint} not null,
  scope text not null,
  created_at_ms ${bigint} not null
)`,

    `create table numbers (
  name text primary key,
  next ${bigint} not null
)${hot}`,
    "insert into numbers (name, next) values ('keys and tokens', 1), ('log entries', 1)",
  ],
};
