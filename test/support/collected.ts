/** Everything that comes one after the other, as a list. */
export async function collected<T>(of: Iterable<T> | AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of of) all.push(one);
  return all;
}
