/** Something outside the program keeps it from starting. The message is for the operator, in one line. */
export class CannotStart extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CannotStart';
  }
}
