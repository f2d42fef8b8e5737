// What "import 'waypost'" finds. The package is a command: an import that began to serve, or that failed inside Node with
// the name of a missing file, would say nothing of that.
throw new Error(
  'waypost is a command, not a library: run "waypost dev", and talk to it with @upstash/qstash or over HTTP',
);
