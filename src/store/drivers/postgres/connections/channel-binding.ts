/** Channel binding: the server proves that it knows the password on this connection. Some URLs require this proof. */
import pg from 'pg';

const BINDINGS = ['disable', 'prefer', 'require'] as const;
type Binding = (typeof BINDINGS)[number];

export const BINDING_PARAMETER = 'channel_binding';

/** The SASL mechanism that includes the certificate of the connection (RFC 5929 4). */
const BOUND = 'SCRAM-SHA-256-PLUS';

/** `channel_binding` as in libpq, except for the default, `disable`: the client library cannot read every certificate. */
export function bindingOf(parameters: URLSearchParams): Binding {
  const name = parameters.get(BINDING_PARAMETER) ?? 'disable';
  const binding = BINDINGS.find((each) => each === name);
  if (binding !== undefined) return binding;
  throw new Error(`${BINDING_PARAMETER} must be one of ${BINDINGS.join(', ')}, not ${JSON.stringify(name)}`);
}

/** A client that sends no password to a server without channel binding, and rejects a server without authentication. */
export class BoundClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    const { connection } = this as unknown as { connection: pg.Connection };
    let isOffered = false;
    let isProven = false;
    const refuse = () => {
      const message = `${BINDING_PARAMETER}=require: the server does not offer ${BOUND}`;
      connection.emit('error', Object.assign(new Error(message), { code: 'UNBOUND' }));
      connection.stream.destroy();
    };
    connection.on('authenticationSASL', ({ mechanisms }: { mechanisms: readonly string[] }) => {
      isOffered = mechanisms.includes(BOUND);
      if (!isOffered) refuse();
    });
    connection.on('authenticationSASLFinal', () => {
      isProven = isOffered;
    });
    connection.on('authenticationCleartextPassword', refuse);
    connection.on('authenticationMD5Password', refuse);
    connection.on('authenticationOk', () => {
      if (!isProven) refuse();
    });
  }
}
