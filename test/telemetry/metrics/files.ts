/** Finds the metrics that the files in deploy/prometheus query. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

export const FOLDER = join(import.meta.dirname, '../../../deploy/prometheus');

const read = (name: string) => readFileSync(join(FOLDER, name), 'utf8');

interface Alerts {
  groups: { rules: { alert: string; expr: string; annotations: { summary: string } }[] }[];
}
interface Dashboard {
  panels: { id: number; targets: { expr: string }[] }[];
}
interface ScaledObject {
  spec: { triggers: { metadata: { query: string } }[] };
}

export const rules = (parse(read('alerts.yaml')) as Alerts).groups.flatMap((group) => group.rules);
export const { panels } = JSON.parse(read('dashboard.json')) as Dashboard;

/** By file. */
export const QUERIES = {
  'alerts.yaml': rules.map(({ expr }) => expr),
  'dashboard.json': panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  'keda.yaml': (parse(read('keda.yaml')) as ScaledObject).spec.triggers.map(({ metadata }) => metadata.query),
};
