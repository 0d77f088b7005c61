// A small validator of answers that, unlike JSON Schema, also refuses what is not documented.
import { expect } from 'vitest';

export type Schema = {
  $ref?: string;
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  enum?: unknown[];
  const?: unknown;
  pattern?: string;
  anyOf?: Schema[];
};
type Schemas = Readonly<Record<string, Schema>>;

/** The schema that a reference leads to. */
export function resolved(schema: Schema, schemas: Schemas): Schema {
  const name = schema.$ref?.replace('#/components/schemas/', '');
  if (name === undefined) return schema;
  expect(schemas, schema.$ref).toHaveProperty([name]);
  return resolved(schemas[name] as Schema, schemas);
}

/** Expects a value to be what its schema says, and to have nothing else. */
export function fits(value: unknown, schema: Schema, schemas: Schemas, where: string): void {
  const found = resolved(schema, schemas);
  if (found.anyOf !== undefined) {
    const possible = found.anyOf.filter((one) => (value === null ? one.type === 'null' : one.type !== 'null'));
    // of several objects the one that has all it must have
    const has = (one: Schema): boolean => (resolved(one, schemas).required ?? []).every((name) => name in (value as object));
    const other = possible.length > 1 ? possible.filter(has) : possible;
    expect(other, `${where} is ${JSON.stringify(value)}`).toHaveLength(1);
    fits(value, other[0] as Schema, schemas, where);
    return;
  }
  const type = value === null ? 'null' : Array.isArray(value) ? 'array' : Number.isInteger(value) ? 'integer' : typeof value;
  expect([found.type].flat(), `${where} is ${JSON.stringify(value)}`).toContain(type);
  if (found.enum !== undefined) expect(found.enum, where).toContain(value);
  if (found.const !== undefined) expect(value, where).toBe(found.const);
  if (found.pattern !== undefined && typeof value === 'string') expect(value).toMatch(new RegExp(found.pattern));
  if (type === 'array') for (const item of value as unknown[]) fits(item, found.items as Schema, schemas, `${where}[]`);
  if (type !== 'object') return;
  for (const name of found.required ?? []) expect(value, where).toHaveProperty(name);
  for (const [name, item] of Object.entries(value as object)) {
    const child = found.properties?.[name];
    expect(child, `${where}.${name} is not documented`).toBeDefined();
    fits(item, child as Schema, schemas, `${where}.${name}`);
  }
}
