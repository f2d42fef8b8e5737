/** What is docs/metrics.md? Made of the table, so that no metric is without a line. */
import { PROJECT_METRICS } from '../../../src/api/project/overview.ts';
import { COUNTED_OF_ALL_MAX } from '../../../src/engine/lists/unfinished.ts';
import { emptyMinute } from '../../../src/engine/minutes/minute.ts';
import { listMetrics } from '../../../src/telemetry/metrics/table.ts';

const UNITS: Readonly<Record<string, string>> = { seconds: 'seconds', bytes: 'bytes' };

export function metricsPage(): string {
  const rows = listMetrics().map(({ name, metric }) => {
    const { kind, label, meaning } = metric;
    const values = label?.values.map((value) => `\`${value}\``).join(' ') ?? '';
    const labels = label ? [`\`${label.name}\`${values === '' ? '' : `: ${values}`}`] : [];
    if (kind === 'gauge' && metric.of === 'cell') labels.push('`cell`, of several');
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

A server tells [Prometheus](https://prometheus.io), and whatever else reads its text format, what it does. It is off until it has an
address; [settings](settings.md) has the details.

\`\`\`sh
WAYPOST_METRICS_ADDRESS=9464 waypost serve
\`\`\`

\`\`\`sh
curl -sSf http://127.0.0.1:9464/metrics
\`\`\`

- **Who may see it.** Whoever reaches the address, without a token: the numbers are of all projects together. A port alone is a
  port of 127.0.0.1; \`0.0.0.0:9464\` is reached from outside, so let only your monitoring through. It names up to
  20 projects, and no URL, queue, key or label of theirs. The API's own address has no \`/metrics\`; what [one project](#one-project) does, its tokens see there.
- **Several workers in one process** (\`WAYPOST_WORKERS\`) answer together: their counters are added up.
- **Several processes on PostgreSQL** are asked one by one, each at its own address. Counters, histograms, \`waypost_in_flight\` and what tells of the process
  are of that process: add them up, as with \`sum(rate(waypost_attempts_total[5m]))\`. The backlog, the DLQ, the runs, the size of the database and
  \`waypost_workers\` are of the whole database, the same from each: take the largest.
- **Several [cells](scaling.md#cells)**: the numbers of the database are told for each cell that a worker of the process serves, with its name as the label \`cell\`. So
  take the largest of each cell, and then add up: \`sum by (state) (max by (cell, state) (waypost_backlog_messages))\`. That is right for one cell too,
  which has no such label. Do not add up \`waypost_store_bytes\`: cells that are schemas of one database tell its size each. \`waypost_workers\` has no
  such label: every worker counts in the first cell.
- **The backlog is a sample**, taken when somebody asks and at most once in four seconds; \`waypost_sample_age_seconds\` is its age. A server that
  nobody asks reads nothing. Each of several cells is read once in as many seconds as there are, in four at least and
  a minute at most; one at rest once a minute, and not opened for it. A database that takes longer than a second is not waited
  for, and one that is away not asked: what was known of it is told, with its age, and of others what they say now. Of each
  kind ${COUNTED_OF_ALL_MAX.toLocaleString('en')} are counted at most: that number means as many or more.
- **Counters begin at 0** when a process starts; Prometheus makes rates of them all the same.

[A configuration](../deploy/prometheus/prometheus.yaml) of Prometheus, [rules for alerts](../deploy/prometheus/alerts.yaml),
[a dashboard](../deploy/prometheus/dashboard.json) to import into Grafana and [an example](../deploy/prometheus/keda.yaml) for KEDA, which adds
pods to an app while messages wait for it, are in the repository. To be told without anything that asks, there are
[operator events](operator-events.md).

| name | kind | unit | label | meaning |
|---|---|---|---|---|
${rows.join('\n')}

## One project

A token that may read gets the numbers of its own project, and of no other, at the address of the API:

\`\`\`sh
curl -sSf http://127.0.0.1:8080/v2/waypost/metrics -H "Authorization: Bearer $QSTASH_TOKEN"
\`\`\`

For Prometheus, give the token in \`authorization: { credentials_file: … }\` and set \`metrics_path: /v2/waypost/metrics\`. Every worker tells the
same, read from the store at each request. Like [the overview](logs.md#what-is-not-finished) it counts a project's messages among the newest
10,000 of all, and the DLQ up to a limit. More of each minute, and earlier ones, are in the [rates by the minute](logs.md#rates-by-the-minute).

| name | kind | unit | label | meaning |
|---|---|---|---|---|
${ofProject.join('\n')}
`;
}

function unitOf(name: string): string {
  return name.split('_').flatMap((word) => UNITS[word] ?? [])[0] ?? '';
}
