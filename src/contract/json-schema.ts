// JSON Schema of replies: with all words for the documents, and bare for fastify's serialisers, which want types only. Called by mount.ts and
// openapi.ts.
import { z } from 'zod';
import type { JsonSchema } from './fields.ts';

type Node = Record<string, unknown>;

/** The schema of an answer, for the documents (2020-12, as OpenAPI 3.1 takes it). */
export function documentSchema(reply: z.ZodType): JsonSchema {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(reply, { io: 'output' }) as Node;
  return mapSchema(schema, open);
}

/** Types, properties and required only; null stands in `type`, where the serialiser is fast. */
export function serializerSchema(reply: z.ZodType): JsonSchema {
  return mapSchema(documentSchema(reply) as Node, bare);
}

/** New fields may be added to answers (by expand, by later versions), so readers must not refuse them. */
function open(node: Node): Node {
  const merged = mergeNull(node);
  if (merged.additionalProperties !== false) return merged;
  const { additionalProperties: _closed, ...rest } = merged;
  return rest;
}

function bare(node: Node): Node {
  const { type, properties, required, items, additionalProperties, enum: words, const: word } = node;
  const kept = {
    type: type ?? typeof (word ?? (words as unknown[] | undefined)?.[0]),
    properties,
    required,
    items,
    additionalProperties,
  };
  return Object.fromEntries(Object.entries(kept).filter(([, value]) => value !== undefined));
}

/** `anyOf: [X, null]` as X whose type may be null. */
function mergeNull(node: Node): Node {
  const { anyOf, ...outer } = node;
  if (!Array.isArray(anyOf) || anyOf.length !== 2 || (anyOf[1] as Node).type !== 'null') return node;
  const inner = anyOf[0] as Node;
  return {
    ...inner,
    ...outer,
    type: [inner.type, 'null'],
    ...(Array.isArray(inner.enum) ? { enum: [...inner.enum, null] } : {}),
  };
}

function mapSchema(node: Node, change: (node: Node) => Node): Node {
  const changed = change(node);
  const properties = changed.properties as Record<string, Node> | undefined;
  const items = changed.items as Node | undefined;
  const rest = changed.additionalProperties as Node | undefined;
  return {
    ...changed,
    ...(properties === undefined
      ? {}
      : { properties: Object.fromEntries(Object.entries(properties).map(([name, child]) => [name, mapSchema(child, change)])) }),
    ...(items === undefined ? {} : { items: mapSchema(items, change) }),
    ...(typeof rest === 'object' ? { additionalProperties: mapSchema(rest, change) } : {}),
  };
}
