// Every operation × every refusal that its document names, over real HTTP: each is provoked, none is undocumented, none leaves a row
// behind. The sections are in refusals/ and share one API; their order matters, since the last one checks all their answers.
import { describe } from 'vitest';
import { refusesBodies } from './refusals/body.ts';
import { refusesInTheEnd } from './refusals/end.ts';
import { refusesFields } from './refusals/fields.ts';
import { refusesKeys } from './refusals/idempotency-key.ts';
import { openRefusedCalls } from './refusals/refused-calls.ts';
import { refusesTokens } from './refusals/token.ts';

const calls = openRefusedCalls();

describe('the body', () => refusesBodies(calls));
describe('the token', () => refusesTokens(calls));
describe('the fields', () => refusesFields(calls));
describe('the idempotency key', () => refusesKeys(calls));
describe('at the end', () => refusesInTheEnd(calls));
