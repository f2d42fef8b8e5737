/** Encodes the error that a PostgreSQL server sends before it closes a connection (ErrorResponse in its protocol). */
export function errorResponse(code: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`);
  const head = Buffer.alloc(5, 'E');
  head.writeUInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}
