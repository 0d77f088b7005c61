// What the document says of the sandbox's controls is what they accept and answer.
import { describe, expect, it } from 'vitest';
import { SANDBOX_API } from '../../src/contract/sandbox-api.ts';
import { type Components, documentSchema } from '../../src/contract/shapes.ts';
import { fits, type Schema } from '../support/schema-check.ts';
import { ask, refused, sandbox, withSandbox } from './support/controls.ts';
import { post } from './support/table-service.ts';

withSandbox();

describe('the document of the controls', () => {
  it('names every control, and no other', async () => {
    const { json } = await post(sandbox.url, 'no_such_control', {});
    const names = /there are (.*)$/.exec(String(json.message))?.[1]?.split(', ');
    expect(Object.keys(SANDBOX_API).sort()).toEqual(names?.sort());
  });

  it('says which fields are required, and what is answered', async () => {
    const { address } = await ask('address', { currency: 'LTC' });
    const bodies: Record<string, object> = {
      mine: { currency: 'LTC', blocks: 2 },
      reorg: { currency: 'LTC', depth: 1, drop: false },
      node: { currency: 'LTC', fault: 'reject', for: 3 },
      address: { currency: 'DOGE' },
      receive: { currency: 'LTC', address },
      clock: { advance_seconds: 1 },
      rates: { LTC: ['80.00', null, '80.04', '80.00'], BTC: '65000.00' },
      merchant: { username: 'documented', password: 'documented-documented' },
      bank: { action: 'settle' },
      invoice: { amount: '0.001', expires_in: 60, behaviour: 'hold' },
      lnurl: { min: '0.001', behaviour: 'html' },
    };
    for (const [name, { fields, reply }] of Object.entries(SANDBOX_API)) {
      for (const [field, { required }] of Object.entries(fields)) {
        if (required && (bodies[name] ?? fields[field]) !== undefined) {
          const rest = Object.fromEntries(
            Object.entries(fields).flatMap(([other, { required: also, schema }]) =>
              also && other !== field ? [[other, (schema.examples as unknown[])[0]]] : [],
            ),
          );
          expect([name, ...(await refused(name, rest))]).toEqual([name, 400, 'missing_field', field]);
        }
      }
      if (bodies[name] === undefined) continue;
      const components: Components = new Map();
      const schema = documentSchema(reply, components) as Schema;
      for (const field of Object.keys(bodies[name])) expect([name, field in fields]).toEqual([name, true]);
      fits(await ask(name, bodies[name]), schema, Object.fromEntries(components) as Record<string, Schema>, name);
    }
    await ask('node', { currency: 'LTC', fault: null });
  });
});
