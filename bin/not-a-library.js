// The target of "import 'waypost'". The package is a command. Without this file the import would start a server, or fail with
// an error of Node about a missing file.
throw new Error('waypost is a command, not a library: run "waypost dev", and use it with @upstash/qstash or over HTTP');
