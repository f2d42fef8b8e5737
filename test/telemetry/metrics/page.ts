/** Generates docs/metrics.md from the table, so that every metric has a row. */
import { PROJECT_METRICS } from '../../../src/api/project/overview.ts';
import { COUNTED_OF_ALL_MAX } from '../../../src/engine/lists/unfinished.ts';
import { emptyMinute } from '../../../src/engine/minutes/counts.ts';
import { listMetrics } from '../../../src/telemetry/metrics/table.ts';

const UNITS: Readonly<Record<string, string>> = { seconds: 'seconds', bytes: 'bytes' };

export function metricsPage(): string {
  const rows = listMetrics().map(({ name, metric }) => {
    const { kind, label, meaning } = metric;
    const values = label?.values.map((value) => `\`${value}\``).join(' ') ?? '';
    const labels = label ? [`\`${label.name}\`${values === '' ? '' : `: ${values}`}`] : [];
    if (kind === 'gauge' && metric.of === 'cell') labels.push('`cell`, if there are several');
    return `| \`${name}\` | ${kind} | ${unitOf(name)} | ${labels.join('; ')} | ${meaning} |`;
  });
  const ofProject = PROJECT_METRICS.map(({ name, label, meaning, read }) => {
    const none = { count: 0, isAtLeast: false };
    const values = read({
      ...{ backlog: { active: 0, waiting: none, held: none }, failures: { messages: none, runs: none } },
      ...{ minute: emptyMinute(0), nowMs: 0 },
    });
    const labels = label
      ? `\`${label}\`: ${Object.keys(values)
          .map((value) => `\`${value}\``)
          .join(' ')}`
      : '';
    return `| \`${name}\` | gauge | ${unitOf(name)} | ${labels} | ${meaning} |`;
  });
  return `# Metrics

A server exposes metrics in the text format of [Prometheus](https://prometheus.io). They are off until you set an address
([settings](settings.md)):

\`\`\`sh
WAYPOST_METRICS_ADDRESS=9464 waypost serve
\`\`\`

\`\`\`sh
curl -sSf http://127.0.0.1:9464/metrics
\`\`\`

The repository has a [configuration](../deploy/prometheus/prometheus.yaml) for Prometheus, [alert rules](../deploy/prometheus/alerts.yaml),
a [dashboard](../deploy/prometheus/dashboard.json) for Grafana, and an [example](../deploy/prometheus/keda.yaml) for KEDA that adds pods to an
app while messages wait for it. For notifications without a scraper, use [operator events](operator-events.md).

- **Access.** The address needs no token, and its numbers cover all projects. A port alone listens on 127.0.0.1. With \`0.0.0.0:9464\` it is
  reachable from outside, so let only your monitoring through. The metrics name up to 20 projects and the cells, and none of the projects' URLs, queues,
  keys or labels. The address of the API has no \`/metrics\`; it serves the metrics of [one project](#one-project) to that project's tokens.
- **Several workers in one process** (\`WAYPOST_WORKERS\`) share an address. Their counters are summed.
- **Several processes on PostgreSQL.** Scrape each at its own address. Counters, histograms, \`waypost_in_flight\` and the metrics of the process
  cover one process: sum them, for example \`sum(rate(waypost_attempts_total[5m]))\`. The backlog, the DLQ, the runs, the size of the database and
  \`waypost_workers\` cover the whole database and are the same from each process: take the maximum.
- **Several [cells](scaling.md#cells).** The metrics of a database are reported for each cell that the process serves, with the label \`cell\`.
  Take the maximum per cell, then sum: \`sum by (state) (max by (cell, state) (waypost_backlog_messages))\`. This also works for a single cell, which
  has no such label. Do not sum \`waypost_store_bytes\`: cells in one database each report the size of that database. \`waypost_workers\` has no label
  \`cell\`, because every worker is registered in the first cell.
- **Sampling.** The metrics of the database are read on scrapes, at most once in four seconds; without scrapes, nothing is read.
  \`waypost_sample_age_seconds\` is the age of the values. With several cells, each is read at most once in as many seconds as there are cells (at least 4,
  at most 60), and an idle cell once a minute, without opening it. A read that takes longer than a second is not waited for, and a cell that is down is
  not read: the last known values are reported, with their age.
- **Limit.** Each count of the backlog, the DLQ, the runs and the waiters stops at ${COUNTED_OF_ALL_MAX.toLocaleString('en')}; that value means that many or more.
- **Counters** start at 0 with the process. \`rate()\` handles that.

| name | kind | unit | label | meaning |
|---|---|---|---|---|
${rows.join('\n')}

## One project

A token that may read gets the metrics of its own project, and of no other, from the API:

\`\`\`sh
curl -sSf http://127.0.0.1:8080/v2/waypost/metrics -H "Authorization: Bearer $QSTASH_TOKEN"
\`\`\`

In Prometheus, set \`authorization: { credentials_file: … }\` and \`metrics_path: /v2/waypost/metrics\`. Every worker reports the same
values, read from the store at each request. Like the [overview](logs.md#unfinished-messages), they count a project's messages among the newest
10,000 of all, and the DLQ up to a limit. [Rates by the minute](logs.md#rates-by-the-minute) has more figures, also of earlier minutes.

| name | kind | unit | label | meaning |
|---|---|---|---|---|
${ofProject.join('\n')}
`;
}

function unitOf(name: string): string {
  return name.split('_').flatMap((word) => UNITS[word] ?? [])[0] ?? '';
}
