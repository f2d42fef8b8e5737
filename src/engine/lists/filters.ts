/** The filters of lists and bulk actions. */
import type { LogState, Millis } from '../model.ts';

/** Several values of one name are alternatives; a message must match every name that is given (contract M 21). */
export interface AttributeFilter {
  url?: string[];
  host?: string[];
  path?: string[];
  topicName?: string[];
  endpointName?: string[];
  queueName?: string[];
  scheduleId?: string[];
  label?: string[];
  flowControlKey?: string[];
  callerIp?: string[];
  fromMs?: Millis;
  toMs?: Millis;
}

export interface DeadFilter extends AttributeFilter {
  messageId?: string[];
  responseStatus?: number[];
}

export interface LogFilter extends AttributeFilter {
  /** Up to 1,000 ids; unknown ids match nothing. */
  messageId?: string[];
  state?: LogState[];
}
