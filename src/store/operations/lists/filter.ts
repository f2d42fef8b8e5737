/** Translates a filter (contract M 21.1) into SQL conditions on `contents c`. */
import type { AttributeFilter } from '../../../engine/lists/filters.ts';
import type { SqlParam } from '../../driver.ts';

/** Conditions that are joined with `and`, with their parameters in order. */
export interface Conditions {
  texts: string[];
  params: SqlParam[];
}

/** Adds one condition. */
export function addCondition({ texts, params }: Conditions, text: string, ...values: readonly SqlParam[]): void {
  texts.push(text);
  params.push(...values);
}

/** The conditions for the attributes of `filter`. The caller adds the times, because the time columns of lists differ. */
export function contentConditions(filter: AttributeFilter): Conditions {
  const conditions: Conditions = { texts: [], params: [] };
  const among = (column: string, values: readonly string[] | undefined): void => {
    if (!values) return;
    addCondition(conditions, `${column} in (??)`, values);
  };
  among('c.url', filter.url);
  among('c.origin', filter.host?.flatMap(originsOf));
  among('c.path', filter.path);
  among('c.topic_name', filter.topicName);
  among('c.queue_name', filter.queueName);
  among('c.schedule_id', filter.scheduleId);
  among('c.flow_control_key', filter.flowControlKey);
  among('c.caller_ip', filter.callerIp);
  if (filter.endpointName) {
    // The endpoint name is used too rarely to need a column. No string inside JSON can contain the searched text, because
    // the quotes in strings are escaped.
    const anyOf = filter.endpointName.map(() => "replace(c.settings, ?, '') <> c.settings");
    const texts = filter.endpointName.map((name) => JSON.stringify({ endpointName: name }).slice(1, -1));
    addCondition(conditions, anyOf.length > 0 ? `(${anyOf.join(' or ')})` : '1 = 0', ...texts);
  }
  if (filter.label) {
    // This is case-sensitive in both databases and has no wildcards, unlike `like`. No label has a comma, so a searched
    // label with a comma is ignored: `a,b` would find a message with the labels a and b.
    const labels = filter.label.filter((label) => !label.includes(','));
    const anyOf = labels.map(() => "replace(c.labels, ?, '') <> c.labels");
    addCondition(
      conditions,
      anyOf.length > 0 ? `(${anyOf.join(' or ')})` : '1 = 0',
      ...labels.map((label) => `,${label},`),
    );
  }
  return conditions;
}

/** The possible origins of a host, which includes the port if the URL has one. */
function originsOf(host: string): string[] {
  const name = host.toLowerCase();
  const origins = [`https://${name}`, `http://${name}`];
  if (name.endsWith(':443')) origins.push(`https://${name.slice(0, -':443'.length)}`);
  if (name.endsWith(':80')) origins.push(`http://${name.slice(0, -':80'.length)}`);
  return origins;
}
