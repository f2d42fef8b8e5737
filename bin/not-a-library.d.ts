/** Waypost is a command, not a library: run `waypost dev`, and talk to it with `@upstash/qstash` or over HTTP. For tests: `waypost/testing`. */
export {};
