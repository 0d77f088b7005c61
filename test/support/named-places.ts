// What documents and comments name of the source: files, and in CONTRIBUTING's table names inside them. A rename that forgets one would send the
// next reader to a place that is not there.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The paths in backticks of a document that do not exist below `root`, and in `path` (`name`) the names that the file does not have. */
export function lostPlaces(root: string, document: string): readonly string[] {
  const paths = [...document.matchAll(/`((?:src|test|docs|db|bench|scripts|bin)\/[\w./-]*[\w/])`/g)].map(
    (match) => match[1] as string,
  );
  const lost = paths.filter((path) => !existsSync(join(root, path)));
  const pairs = [...document.matchAll(/`(src\/[\w./-]+\.ts)` \(((?:`\w+`(?:, )?)+)/g)];
  const names = pairs.flatMap(([, path, list]) =>
    [...(list as string).matchAll(/`(\w+)`/g)].map((match) => ({ path: path as string, name: match[1] as string })),
  );
  const gone = names.filter(({ path, name }) => {
    const file = join(root, path);
    return !existsSync(file) || !new RegExp(`\\b${name}\\b`).test(readFileSync(file, 'utf8'));
  });
  return [...lost, ...gone.map(({ path, name }) => `${path} (${name})`)];
}

/** The files that the comments of a source text name by their layer, as `core/judge/times`, and that do not exist. */
export function lostInComments(src: string, text: string): readonly string[] {
  const comments = [...text.matchAll(/\/\*[\s\S]*?\*\/|(?:^|\s)\/\/.*$/gm)].map((match) => match[0]).join('\n');
  const layers = 'core|contract|store|flow|http|worker|signer|sandbox|outside|main';
  const named = [...comments.matchAll(new RegExp(`(?<![\\w./-])(?:${layers})/[a-z0-9][a-z0-9/-]*`, 'g'))].map(
    (match) => match[0],
  );
  return named.filter((path) => !existsSync(join(src, path)) && !existsSync(join(src, `${path}.ts`)));
}

/** In a table of folders: the folders of `src` that have no row, rows of folders that are not there, and what a row names that its folder has not. */
export function lostInFolders(src: string, folders: readonly string[], document: string): readonly string[] {
  const rows = [...document.matchAll(/^\| `([a-z/-]+)` \| (.*) \|$/gm)].map(([, folder, about]) => ({
    folder: folder as string,
    names: [...(about as string).matchAll(/`([a-z][a-z0-9/-]*)`/g)].map((match) => match[1] as string),
  }));
  const exists = (path: string): boolean => existsSync(join(src, path)) || existsSync(join(src, `${path}.ts`));
  return [
    ...folders.filter((folder) => !rows.some((row) => row.folder === folder)).map((folder) => `${folder} has no row`),
    ...rows.filter(({ folder }) => !folders.includes(folder)).map(({ folder }) => `${folder} is not there`),
    ...rows.flatMap(({ folder, names }) =>
      names.filter((name) => !exists(`${folder}/${name}`) && !exists(name)).map((name) => `${folder}: ${name}`),
    ),
  ];
}
