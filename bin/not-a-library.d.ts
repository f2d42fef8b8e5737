/** Waypost is a command, not a library: run `waypost dev`, and use it with `@upstash/qstash` or over HTTP. For tests, import `waypost/testing`. */
export {};
