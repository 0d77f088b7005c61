// The fields of request bodies: what each accepts, as a check that refuses with the exact code of the error table and as JSON Schema for
// the documents.
import { Refusal, type RefusalCode } from '../core/refusal.ts';
import { TRANSACTION_STATUSES, type TransactionStatus } from '../core/transaction-states.ts';

export type JsonSchema = { readonly [keyword: string]: unknown };

/** The same, or null. */
export function orNull(schema: JsonSchema): JsonSchema {
  if (schema.anyOf !== undefined) return { ...schema, anyOf: [...(schema.anyOf as JsonSchema[]), { type: 'null' }] };
  if (schema.type === undefined) return { anyOf: [schema, { type: 'null' }] };
  const types = [schema.type].flat();
  if (types.includes('null')) return schema;
  return { ...schema, type: [...types, 'null'], ...(Array.isArray(schema.enum) ? { enum: [...schema.enum, null] } : {}) };
}

export type Field<T, Required extends boolean = boolean> = {
  readonly required: Required;
  /** What the field is, for the documents. */
  readonly about: string;
  readonly schema: JsonSchema;
  /** The code that refuses a wrong value or a wrong JSON type. */
  readonly refusal: RefusalCode;
  /** Reads a value that is there (not null); throws Refusal with `param`. */
  readonly read: (value: unknown, name: string) => T;
  /** The value of an explicit null; without it null means a missing field. */
  readonly ofNull?: T;
};
// biome-ignore lint/suspicious/noExplicitAny: a field of any value type
export type Fields = { readonly [name: string]: Field<any> };
/** What a handler gets: an absent optional field is null. */
export type BodyOf<F extends Fields> = {
  readonly [K in keyof F]: F[K] extends Field<infer T, infer R> ? (R extends true ? T : T | null) : never;
};

/**
 * Reads the fields of a body; a missing one (absent or null) is refused before any wrong one. Unknown fields are ignored.
 * @param body the parsed JSON object
 * @param alsoRequired optional fields that this body needs
 */
export function readFields<F extends Fields>(
  fields: F,
  body: Readonly<Record<string, unknown>>,
  alsoRequired: readonly string[] = [],
): BodyOf<F> {
  for (const name in fields) {
    const required = fields[name]?.required || alsoRequired.includes(name);
    if (required && (body[name] === undefined || body[name] === null)) throw missing(name);
  }
  const read: Record<string, unknown> = {};
  for (const name in fields) {
    const value = body[name];
    const field = fields[name] as Field<unknown>;
    if (value === undefined) read[name] = null;
    else if (value === null) read[name] = field.ofNull ?? null;
    else read[name] = field.read(value, name);
  }
  return read as BodyOf<F>;
}

/** The refusal 400 `missing_field` of a required field that was not sent, or sent as null; its `param` is the field. */
export function missing(name: string): Refusal {
  return new Refusal('missing_field', { message: `${name} is required.`, param: name });
}

/** The refusal of a field with an unusable value; `accepted` says what would be usable, after "must be". */
export function wrong(code: RefusalCode, name: string, accepted: string): Refusal {
  return new Refusal(code, { message: `${name} must be ${accepted}.`, param: name });
}

/** The same field, not required. */
export function optional<T>(field: Field<T>): Field<T, false> {
  return { ...field, required: false };
}

/** A required field that accepts the same values but results in another one, computed from the parsed and the sent value. */
export function outcome<T, U>({ about, refusal, schema, read }: Field<T>, of: (value: T, sent: unknown) => U): Field<U, true> {
  return { required: true, about, refusal, schema, read: (sent, name) => of(read(sent, name), sent) };
}

/**
 * What no idempotency key may hold, as the inside of a character class: control characters, line and paragraph separators. Written so that
 * Python's `re` and others can read it too. Format characters are allowed: names of many languages and emoji are written with them.
 */
export const UNPRINTABLE = '\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029';
export const KEY_MAX_LENGTH = 255;
const CONTROL = /\p{Cc}/u;
/** More than `max` characters (code points, as JSON Schema counts). */
export function longerThan(text: string, max: number): boolean {
  // a code point is one or two units
  return text.length > max && (text.length > 2 * max || Array.from(text).length > max);
}

type TextOptions = {
  readonly max: number;
  readonly min?: number;
  readonly refusal?: RefusalCode;
  readonly anything?: boolean;
  readonly example: string;
};

/** A string of at most `max` characters (code points) without control characters; `anything` allows those too. */
export function text(about: string, options: TextOptions): Field<string, true> {
  const { max, min = 0, refusal = 'invalid_request', anything = false, example } = options;
  const accepted = `a string of ${min > 0 ? `${min} to ${max}` : `at most ${max}`} characters${anything ? '' : ' without control characters'}`;
  return {
    required: true,
    about,
    refusal,
    schema: {
      type: 'string',
      minLength: min,
      maxLength: max,
      ...(anything ? {} : { pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]*$' }),
      examples: [example],
    },
    read(value, name) {
      if (typeof value !== 'string' || value.length < min || longerThan(value, max) || !value.isWellFormed()) {
        throw wrong(refusal, name, accepted);
      }
      if (!anything && CONTROL.test(value)) throw wrong(refusal, name, accepted);
      return value;
    },
  };
}

/** One of a few fixed values. */
export function choice<const T extends string>(
  about: string,
  words: readonly T[],
  refusal: RefusalCode = 'invalid_request',
): Field<T, true> {
  const accepted = `one of ${words.join(', ')}`;
  return {
    required: true,
    about,
    refusal,
    schema: { type: 'string', enum: words },
    read(value, name) {
      if (!words.includes(value as T)) throw wrong(refusal, name, accepted);
      return value as T;
    },
  };
}

/** A list of different values out of a few fixed ones, at least `least` of them; the order of the table is kept. */
export function choices<const T extends string>(about: string, words: readonly T[], least = 0): Field<readonly T[], true> {
  const accepted = `a list of ${least > 0 ? `${least} or more ` : ''}names out of ${words.join(', ')}`;
  return {
    required: true,
    about,
    refusal: 'invalid_request',
    schema: { type: 'array', minItems: least, items: { type: 'string', enum: words }, examples: [words.slice(0, 1)] },
    read(value, name) {
      if (!Array.isArray(value) || value.length < least || value.some((word) => !words.includes(word)))
        throw wrong('invalid_request', name, accepted);
      return words.filter((word) => value.includes(word));
    },
  };
}

/** A whole JSON number within bounds. */
export function integer(about: string, minimum: number, maximum: number): Field<number, true> {
  return {
    required: true,
    about,
    refusal: 'invalid_request',
    schema: { type: 'integer', minimum, maximum, examples: [maximum] },
    read(value, name) {
      if (typeof value !== 'number' || !Number.isInteger(value) || value < minimum || value > maximum) {
        throw wrong('invalid_request', name, `an integer from ${minimum} to ${maximum}`);
      }
      return value;
    },
  };
}

/** true or false. */
export function flag(about: string): Field<boolean, true> {
  return {
    required: true,
    about,
    refusal: 'invalid_request',
    schema: { type: 'boolean', examples: [true] },
    read(value, name) {
      if (typeof value !== 'boolean') throw wrong('invalid_request', name, 'true or false');
      return value;
    },
  };
}

const LOCAL = '[^\\s@"(),:;<>\\[\\]\\\\.\\u0000-\\u001f\\u007f-\\u009f]+';
const EMAIL = new RegExp(
  `^(?=.{1,64}@)${LOCAL}(?:\\.${LOCAL})*@(?:[\\p{L}\\p{N}](?:[\\p{L}\\p{N}-]{0,61}[\\p{L}\\p{N}])?\\.)+[\\p{L}\\p{N}-]{2,63}$`,
  'u',
);

/** One e-mail address (RFC 5321 mailbox without quoted local parts or address literals). */
export function email(about: string): Field<string, true> {
  return {
    required: true,
    about,
    refusal: 'invalid_email',
    schema: { type: 'string', format: 'idn-email', maxLength: 254, examples: ['customer@example.com'] },
    read(value, name) {
      if (typeof value !== 'string' || longerThan(value, 254) || !value.isWellFormed() || !EMAIL.test(value)) {
        throw wrong('invalid_email', name, 'one e-mail address of at most 254 characters');
      }
      return value;
    },
  };
}

/**
 * The id of something that may not exist. Any string is well formed; one that we could never have issued becomes the bare prefix, which
 * matches nothing, so that it is answered like every unknown id and never reaches the database.
 */
export function reference(about: string, prefix: string): Field<string, true> {
  const issued = new RegExp(`^${prefix}[0-9A-Za-z]{1,64}$`);
  return {
    required: true,
    about,
    refusal: 'invalid_request',
    schema: { type: 'string', examples: [`${prefix}0351dYxk0d1Jt8vTgkN1AM`] },
    read(value, name) {
      if (typeof value !== 'string') throw wrong('invalid_request', name, 'a string');
      return issued.test(value) ? value : prefix;
    },
  };
}

const isDay = (day: string): boolean => {
  const ms = Date.parse(`${day}T00:00:00Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day);
};
const TIME = '^\\d{4}-\\d{2}-\\d{2}[Tt]([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?([Zz]|[+-]\\d{2}:\\d{2})$';
const TIME_PATTERN = new RegExp(TIME);

/** A time in ISO 8601 with its zone (RFC 3339, without leap seconds); the result is in milliseconds since 1970. */
export function moment(about: string): Field<number, true> {
  return {
    required: true,
    about,
    refusal: 'invalid_request',
    schema: { type: 'string', format: 'date-time', pattern: TIME, examples: ['2026-11-22T00:00:00.000Z'] },
    read(value, name) {
      const ms =
        typeof value === 'string' && TIME_PATTERN.test(value) && isDay(value.slice(0, 10))
          ? Date.parse(value.toUpperCase())
          : Number.NaN;
      if (Number.isNaN(ms)) throw wrong('invalid_request', name, 'a UTC time such as "2026-01-31T12:00:00.000Z"');
      return ms;
    },
  };
}

export const TOKEN_SCHEMA: JsonSchema = {
  type: 'string',
  minLength: 1,
  maxLength: 4096,
  examples: ['eyJhbGciOiJFZERTQSJ9.e30.c2lnbmF0dXJl'],
};

/** A token we issued: anything else in this field is an invalid token (401), not a malformed field. */
export function token(about: string): Field<string, true> {
  return {
    required: true,
    about,
    refusal: 'invalid_token',
    schema: TOKEN_SCHEMA,
    read(value) {
      if (typeof value !== 'string' || value.length === 0 || value.length > 4096) throw new Refusal('invalid_token');
      return value;
    },
  };
}

/** A field whose explicit null is a value of its own, `'none'`; when absent it is null like every other field. */
export function removable<T>({ about, refusal, schema, read }: Field<T>): Field<T | 'none', false> {
  return { required: false, about, refusal, schema: orNull(schema), read, ofNull: 'none' };
}

/** The id of a ledger entry: a number in a string. */
export function entryId(about: string): Field<bigint, true> {
  return {
    required: true,
    about,
    refusal: 'invalid_request',
    schema: { type: 'string', pattern: '^[0-9]{1,18}$', examples: ['1042'] },
    read(value, name) {
      if (typeof value !== 'string' || !/^[0-9]{1,18}$/.test(value)) throw wrong('invalid_request', name, 'an entry_id');
      return BigInt(value);
    },
  };
}

/** One of the eleven statuses. */
export function status(about: string): Field<TransactionStatus, true> {
  return choice(about, TRANSACTION_STATUSES);
}
