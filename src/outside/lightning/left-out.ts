// Leaves a list out of JSON while it comes: what is in it others choose, and how much of it there is.

/** @param name undefined: nothing is left out. @returns the text of the next piece without what is in lists of that name, of any depth, also where a piece ends within one; a list stays, and is empty */
export function leavingOut(name: string | undefined): (piece: string) => string {
  if (name === undefined) return (piece) => piece;
  const begins = new RegExp(`"${name}": ?\\[`, 'g');
  const longest = `"${name}": [`;
  /** The end of the last piece, where it may be the beginning of a list. */
  let kept = '';
  /** How many lists of the left out one are open; 0 = outside. */
  let depth = 0;
  let isInText = false;
  let isEscaped = false;

  /** From where on the rest of a text may be the beginning of a list. A quotation mark within a text is written with a backslash before it. */
  function undecidedFrom(text: string): number {
    for (let at = Math.max(0, text.length - longest.length); at < text.length; at++)
      if (longest.startsWith(text.slice(at))) return at;
    return text.length;
  }

  /** @returns where the list ends; the length of the text when that is in another piece */
  function endOf(text: string, from: number): number {
    const marks = /["\\[\]]/g;
    marks.lastIndex = from + (isEscaped ? 1 : 0);
    isEscaped = isEscaped && text.length === from;
    for (let found = marks.exec(text); found !== null; found = marks.exec(text)) {
      const [mark] = found;
      if (mark === '\\') {
        isEscaped = found.index + 1 === text.length;
        marks.lastIndex = found.index + 2;
      } else if (mark === '"') isInText = !isInText;
      else if (!isInText) depth += mark === '[' ? 1 : -1;
      if (depth === 0) return found.index;
    }
    return text.length;
  }

  return (piece) => {
    const text = kept + piece;
    kept = '';
    const left: string[] = [];
    for (let at = 0; at < text.length; ) {
      if (depth > 0) {
        at = endOf(text, at);
        continue;
      }
      begins.lastIndex = at;
      const found = begins.exec(text);
      const to = found === null ? Math.max(at, undecidedFrom(text)) : begins.lastIndex;
      left.push(text.slice(at, to));
      if (found === null) {
        kept = text.slice(to);
        break;
      }
      depth = 1;
      at = to;
    }
    return left.join('');
  };
}
