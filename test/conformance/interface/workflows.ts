/** interface.md, what it says about workflows: not part of the messaging interface. */
import { planned, type Section } from '../support/statement.ts';

const WITH_WORKFLOWS = 'comes with workflows';

export const workflows: Section = {
  title: 'Workflows',
  statements: [
    planned('I29', 'Message logs of workflows are listed flat, with cursor and events.', WITH_WORKFLOWS),
    planned('I30', 'A log entry of a step has its step information; one of a run has none.', WITH_WORKFLOWS),
    planned('I31', 'The list takes its filters: run, URL, creation date, state, message, start, end.', WITH_WORKFLOWS),
    planned('I32', 'A page has 1000 entries by default and at most.', WITH_WORKFLOWS),
    planned('I33', 'A notify answers each waiter with the message that it was sent.', WITH_WORKFLOWS),
    planned('I34', 'A notify that nobody waits for is answered with an empty array.', WITH_WORKFLOWS),
  ],
};
