// --json when there is no answer: it hides no other mistake, and a process that does not start gives its reason in JSON too.
import { expect, test } from 'vitest';
import { runCli } from './run.ts';

test.each([
  [['--json'], /^a command is missing; accepted: start, api/],
  [['merchant', '--json'], /^a command is missing; accepted: add, list, seal, suspend, resume$/],
  [['chain', '--json'], /^a command is missing; accepted: status/],
  [['keys', 'forget', '--json'], /^unknown command 'forget'; accepted: init, /],
  [['--json', 'nonsense'], /^unknown command 'nonsense'; accepted: start, /],
])('%j tells what is missing', async (args, message) => {
  const ran = await runCli(args, {});
  expect(ran).toMatchObject({ code: 2, out: '' });
  expect(JSON.parse(ran.err)).toEqual({ error: 'usage', message: expect.stringMatching(message) });
});

test.each(['start', 'api'])('%s --json says in JSON why it does not start', async (name) => {
  const ran = await runCli([name, '--json'], { PORT: '99999' });
  expect(ran).toMatchObject({ code: 1, out: '' });
  expect(JSON.parse(ran.err)).toEqual({
    error: 'failed',
    message: 'PORT: "99999" is not accepted; accepted is a whole number from 0 to 65535',
  });
});
