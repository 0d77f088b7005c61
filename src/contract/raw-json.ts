// A member of an answer that is JSON already, so that a long one need not become objects and text again.

const TEXT = Symbol('JSON');
type RawJson = { readonly [TEXT]: string };

/** For handlers: JSON of a value of this type, which stands for it in an answer and is put in as it is. */
export function rawJson<T>(text: string): T {
  return { [TEXT]: text } as T;
}

function isRaw(member: unknown): member is RawJson {
  return typeof member === 'object' && member !== null && TEXT in member;
}

/** The text of an object whose own members may be of {@link rawJson}; `write` makes the text of the others. */
export function withRawJson(value: object, write: (value: object) => string): string {
  const parts = Object.entries(value).filter(([, member]) => isRaw(member)) as [string, RawJson][];
  if (parts.length === 0) return write(value);
  const names = new Set(parts.map(([name]) => name));
  const others = Object.entries(value).filter(([name]) => !names.has(name));
  const members = parts.map(([name, raw]) => `${JSON.stringify(name)}:${raw[TEXT]}`).join();
  const text = others.length === 0 ? '{}' : write(Object.fromEntries(others));
  return text === '{}' ? `{${members}}` : `${text.slice(0, -1)},${members}}`;
}
