/** Finds variables that look like settings but are not settings, so that a mistyped name does not go unnoticed. */
import { nearest } from './nearest.ts';
import type { Environment } from './parse.ts';
import { isSecret, variableOf } from './setting.ts';
import { listSettings } from './table.ts';

const PREFIX = 'WAYPOST_';

/** Variables that Kubernetes sets in every pod of the namespace of a service named `waypost`, or `waypost-…`. */
const KUBERNETES_VARIABLE =
  /^WAYPOST_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/;

export interface UnknownVariable {
  name: string;
  /** The most similar variable of a setting. */
  suggestion?: string;
}

/** The unknown variables in `env` that are not empty, sorted by name. */
export function unknownVariables(env: Environment): UnknownVariable[] {
  const known = new Set(
    listSettings().flatMap(({ name, setting }) => {
      const variable = variableOf(name);
      return isSecret(setting) ? [variable, `${variable}_FILE`] : [variable];
    }),
  );
  const candidates = [...known].map((name) => name.slice(PREFIX.length));
  return Object.entries(env)
    .filter(([name, value = '']) => name.startsWith(PREFIX) && !known.has(name) && !isForeign(name, value))
    .map(([name]) => {
      const nearestName = nearest(name.slice(PREFIX.length), candidates);
      return nearestName === undefined ? { name } : { name, suggestion: `${PREFIX}${nearestName}` };
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** An empty variable counts as not set, because compose files pass unset variables as empty. */
function isForeign(name: string, value: string): boolean {
  return value.trim() === '' || value.startsWith('tcp://') || KUBERNETES_VARIABLE.test(name);
}
