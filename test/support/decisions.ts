// DECISIONS.md as data: its paragraphs, its index by subject, and which paragraph says that another one has changed.

export type Decision = { readonly number: number; readonly title: string; readonly text: string };

const numbers = (list: string): number[] => (list.match(/\d+/g) ?? []).map(Number);

/** Every numbered paragraph, in the order of the document; its title is the bold part. */
export function decisionsOf(document: string): readonly Decision[] {
  return [...document.matchAll(/^\*\*(\d+)\. (.*?)\*\*(.*)$/gm)].map(([, number, title, text]) => ({
    number: Number(number),
    title: title as string,
    text: text as string,
  }));
}

/** The numbers in the rows of the index, one after the other. */
export function listedDecisions(document: string): readonly number[] {
  return [...document.matchAll(/^\| [^|]+ \| ([\d, ]+) \|$/gm)].flatMap(([, list]) => numbers(list as string));
}

/** What is said of two paragraphs in one of them only, or of one that is not there. */
export function oneSidedChanges(decisions: readonly Decision[]): readonly string[] {
  const marks = (title: string, verb: string): number[] =>
    [...title.matchAll(new RegExp(`\\b${verb} ((?:\\d+(?:, (?=\\d))?)+)`, 'g'))].flatMap(([, list]) => numbers(list as string));
  const pairs = (verb: string, back: string) =>
    decisions.flatMap(({ number, title }) =>
      marks(title, verb)
        .filter((other) => !marks(decisions.find((one) => one.number === other)?.title ?? '', back).includes(number))
        .map((other) => `${number} ${verb} ${other}, which is not ${back} it`),
    );
  // in the text such a mark would be overlooked
  const inText = decisions
    .filter(({ text }) => /\((?:changed|extended|built) by \d|\b(?:changes|extends) \d/i.test(text))
    .map(({ number }) => `${number} has its mark in the text, not in the title`);
  return [
    ...pairs('changes', 'changed by'),
    ...pairs('changed by', 'changes'),
    ...pairs('extends', 'extended by'),
    ...pairs('extended by', 'extends'),
    ...inText,
  ];
}
