// Every operation × every refusal that its document names, over real HTTP: each is provoked, none is undocumented, none leaves a row behind.
// The sections stand in refusals/ and share one world; their order counts, since the last one looks at what all of them were told.
import { describe } from 'vitest';
import { refusesBodies } from './refusals/body.ts';
import { refusesInTheEnd } from './refusals/end.ts';
import { refusesFields } from './refusals/fields.ts';
import { refusesKeys } from './refusals/idempotency-key.ts';
import { openRefusedCalls } from './refusals/refused-calls.ts';
import { refusesTokens } from './refusals/token.ts';

const world = openRefusedCalls();

describe('the body', () => refusesBodies(world));
describe('the token', () => refusesTokens(world));
describe('the fields', () => refusesFields(world));
describe('the idempotency key', () => refusesKeys(world));
describe('at the end', () => refusesInTheEnd(world));
