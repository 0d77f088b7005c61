// The shapes of answers, from which the handlers' types, the serialisers and the documents are made. A shape describes what is written, not
// what is read: it checks nothing at run time.
import { type JsonSchema, orNull } from './fields.ts';

type Form =
  | { readonly kind: 'leaf'; readonly schema: JsonSchema; readonly example: unknown }
  // biome-ignore lint/suspicious/noExplicitAny: a shape of any type
  | { readonly kind: 'object'; readonly fields: Readonly<Record<string, Shape<any>>>; readonly about?: string }
  | { readonly kind: 'list'; readonly of: Shape<unknown>; readonly about: string }
  | { readonly kind: 'byName'; readonly names: readonly string[]; readonly of: Shape<unknown> }
  | { readonly kind: 'nullable'; readonly of: Shape<unknown> }
  | { readonly kind: 'either'; readonly of: readonly Shape<unknown>[] }
  | { readonly kind: 'named'; readonly name: string; readonly of: Shape<unknown> };

export type Shape<T> = {
  readonly form: Form;
  /** May be left out of the object that has it. */
  readonly optional?: true;
  /** Never present: it only carries the type. */
  readonly is?: T;
};
type OptionalShape<T> = Shape<T> & { readonly optional: true };
export type TypeOf<S> = S extends Shape<infer T> ? T : never;
// biome-ignore lint/suspicious/noExplicitAny: a shape of any type
type ShapeFields = Readonly<Record<string, Shape<any>>>;
type ObjectOf<F extends ShapeFields> = {
  [K in keyof F as F[K] extends { readonly optional: true } ? never : K]: TypeOf<F[K]>;
} & { [K in keyof F as F[K] extends { readonly optional: true } ? K : never]?: TypeOf<F[K]> | undefined };

const leaf = <T>(schema: JsonSchema, example: unknown): Shape<T> => ({ form: { kind: 'leaf', schema, example } });

/** @param more other parts of the JSON Schema: a format, a pattern */
export function string(about: string, example: string, more: JsonSchema = {}): Shape<string> {
  return leaf({ type: 'string', description: about, ...more }, example);
}
/** A whole number from zero. */
export function whole(about: string, example: number): Shape<number> {
  return leaf({ type: 'integer', minimum: 0, description: about }, example);
}
/** A JSON boolean. */
export function flag(about: string, example: boolean): Shape<boolean> {
  return leaf({ type: 'boolean', description: about }, example);
}
/** Always the same. */
export function constant<const T extends string | boolean>(value: T): Shape<T> {
  return leaf({ type: typeof value, const: value }, value);
}
/** One of a few fixed values. */
export function word<const T extends string>(about: string, words: readonly T[], example = words[0]): Shape<T> {
  return leaf({ type: 'string', enum: words, description: about }, example);
}
/** An object with exactly these fields; those that {@link optional} marks may be left out. */
export function object<F extends ShapeFields>(fields: F, about?: string): Shape<ObjectOf<F>> {
  return { form: { kind: 'object', fields, ...(about === undefined ? {} : { about }) } };
}
/** An array of one shape. */
export function list<T>(about: string, of: Shape<T>): Shape<readonly T[]> {
  return { form: { kind: 'list', of, about } };
}
/** An object with some of these keys, each of the same shape. */
export function byName<const K extends string, T>(names: readonly K[], of: Shape<T>): Shape<Partial<Record<K, T>>> {
  return { form: { kind: 'byName', names, of } };
}
/** The shape, or JSON's null. */
export function nullable<T>(of: Shape<T>): Shape<T | null> {
  return { form: { kind: 'nullable', of } };
}
/** One of several; the example is that of the first. */
export function either<S extends readonly Shape<unknown>[]>(...of: S): Shape<TypeOf<S[number]>> {
  return { form: { kind: 'either', of } };
}
/** A field that may be left out of the object which has it; that is not the same as {@link nullable}. */
export function optional<T>(of: Shape<T>): OptionalShape<T> {
  return { ...of, optional: true };
}
/** Has this name in the documents. */
export function named<T>(name: string, of: Shape<T>): Shape<T> {
  return { form: { kind: 'named', name, of } };
}

/** Schemas by name, as components of a document. */
export type Components = Map<string, JsonSchema>;

/** A shape as JSON Schema 2020-12 (as OpenAPI 3.1 uses it); a named shape is put into `components`, and referenced. */
export function documentSchema({ form }: Shape<unknown>, components: Components): JsonSchema {
  switch (form.kind) {
    case 'leaf':
      return form.schema;
    case 'named':
      if (!components.has(form.name)) {
        components.set(form.name, {}); // reserves its place, before the shapes that it references
        components.set(form.name, documentSchema(form.of, components));
      }
      return { $ref: `#/components/schemas/${form.name}` };
    case 'list':
      return { type: 'array', description: form.about, items: documentSchema(form.of, components) };
    case 'byName': {
      const inner = documentSchema(form.of, components);
      return { type: 'object', properties: Object.fromEntries(form.names.map((name) => [name, inner])) };
    }
    case 'nullable':
      return orNull(documentSchema(form.of, components));
    case 'either':
      return { anyOf: form.of.map((one) => documentSchema(one, components)) };
    case 'object': {
      const fields = Object.entries(form.fields);
      // not closed: answers may get new fields, so readers must not refuse them
      return {
        type: 'object',
        ...(form.about === undefined ? {} : { description: form.about }),
        properties: Object.fromEntries(fields.map(([name, shape]) => [name, documentSchema(shape, components)])),
        required: fields.filter(([, shape]) => shape.optional !== true).map(([name]) => name),
      };
    }
  }
}

/** Types, properties and required only, for fastify's serialisers; null is in `type`, where the serialiser is fast. */
export function serializerSchema({ form }: Shape<unknown>): JsonSchema {
  switch (form.kind) {
    case 'leaf':
      return { type: form.schema.type };
    case 'named':
      return serializerSchema(form.of);
    case 'list':
      return { type: 'array', items: serializerSchema(form.of) };
    case 'byName':
      return { type: 'object', additionalProperties: serializerSchema(form.of) };
    case 'nullable': {
      const inner = serializerSchema(form.of);
      return { ...inner, type: [inner.type, 'null'] };
    }
    case 'either':
      // as any JSON: what each of them is cannot be told apart faster
      return {};
    case 'object': {
      const fields = Object.entries(form.fields);
      return {
        type: 'object',
        properties: Object.fromEntries(fields.map(([name, shape]) => [name, serializerSchema(shape)])),
        required: fields.filter(([, shape]) => shape.optional !== true).map(([name]) => name),
      };
    }
  }
}

/** An example, made of those of its parts; optional parts are left out. */
export function exampleOf({ form }: Shape<unknown>): unknown {
  switch (form.kind) {
    case 'leaf':
      return form.example;
    case 'list':
      return [exampleOf(form.of)];
    case 'either':
      return exampleOf(form.of[0] as Shape<unknown>);
    case 'byName':
      return Object.fromEntries(form.names.slice(0, 1).map((name) => [name, exampleOf(form.of)]));
    case 'object': {
      const always = Object.entries(form.fields).filter(([, shape]) => shape.optional !== true);
      return Object.fromEntries(always.map(([name, shape]) => [name, exampleOf(shape)]));
    }
    default:
      return exampleOf(form.of);
  }
}
